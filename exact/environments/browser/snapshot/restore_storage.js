// Restores localStorage and sessionStorage of a document's origin. `states`: the results of take.js for every document of the page.
function restoreStorage(states) {
  const state = states.find(each => each.origin === location.origin && each.local);
  if (!state) return;
  for (const [storage, entries] of [[localStorage, state.local], [sessionStorage, state.session]]) {
    const wanted = new Map(entries);
    for (const key of Object.keys(storage)) if (!wanted.has(key)) storage.removeItem(key);
    for (const [key, value] of wanted) if (storage.getItem(key) !== value) storage.setItem(key, value);
  }
}
