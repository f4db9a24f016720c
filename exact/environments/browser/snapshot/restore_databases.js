// Restores the databases of a document's origin: fills those that exist, creates the others and empties the rest. `bases`: the result of
// copy_databases.js.
async function restoreDatabases(bases) {
  //= database_values
  const wanted = new Set(bases.map(each => each.name));
  for (const {name} of await indexedDB.databases()) if (!wanted.has(name)) bases = [...bases, {name, stores: []}];
  for (const {name, version, stores} of bases) {
    const asked = version ? indexedDB.open(name, version) : indexedDB.open(name);
    asked.onupgradeneeded = () => {
      for (const each of stores) {
        if (asked.result.objectStoreNames.contains(each.title)) continue;
        const made = asked.result.createObjectStore(each.title, {keyPath: each.path, autoIncrement: each.counts});
        for (const index of each.indexes) made.createIndex(index.name, index.path, {unique: index.unique, multiEntry: index.multiEntry});
      }
    };
    const base = await done(asked);
    try {
      for (const title of base.objectStoreNames) {
        const work = base.transaction(title, 'readwrite'), store = work.objectStore(title);
        store.clear();
        for (const [key, value] of stores.find(each => each.title === title)?.rows ?? [])
          store.put(plain(value), ...(key ? [plain(key)] : []));
        await new Promise((good, bad) => { work.oncomplete = good; work.onabort = work.onerror = () => bad(work.error); });
      }
    } finally { base.close(); }
  }
}
