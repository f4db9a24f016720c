// Resolves to all databases of a document's origin as JSON, or to a string, the reason why they cannot be copied. `limit`: most characters
// of JSON.
async function copyDatabases(limit) {
  //= database_values
  if (!globalThis.indexedDB || location.origin === 'null') return [];
  const found = [];
  for (const {name, version} of await indexedDB.databases()) {
    const base = await done(indexedDB.open(name));
    try {
      const stores = [];
      for (const title of base.objectStoreNames) {
        const store = base.transaction(title).objectStore(title);
        const indexes = [...store.indexNames].map(each => store.index(each))
          .map(each => ({name: each.name, path: each.keyPath, unique: each.unique, multiEntry: each.multiEntry}));
        const [keys, values] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
        const rows = values.map((value, i) => [store.keyPath === null ? coded(keys[i]) : null, coded(value)]);
        stores.push({title, path: store.keyPath, counts: store.autoIncrement, indexes, rows});
      }
      found.push({name, version, stores});
    } catch (error) {
      return `database ${name} ${error.message}`;
    } finally { base.close(); }
  }
  return JSON.stringify(found).length > limit ? 'its databases are too large' : found;
}
