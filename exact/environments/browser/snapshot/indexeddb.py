"""Functions that copy a document's IndexedDB as JSON, and put it back. They run in our own environment of it."""

LIMIT = 4_000_000
"""Characters of JSON up to which databases are copied."""

_CODE = """
const coded = value => {
  if (value === undefined) return {t: 'undefined'};
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return {v: value};
  if (Object.is(value, -0)) return {t: 'number', v: '-0'};
  if (typeof value === 'number') return Number.isFinite(value) ? {v: value} : {t: 'number', v: String(value)};
  if (typeof value === 'bigint') return {t: 'bigint', v: String(value)};
  if (value instanceof Date) return {t: 'date', v: value.getTime()};
  if (value instanceof ArrayBuffer) return {t: 'bytes', v: [...new Uint8Array(value)]};
  if (ArrayBuffer.isView(value))
    return {t: 'view', k: value.constructor.name, v: [...new Uint8Array(value.buffer, value.byteOffset, value.byteLength)]};
  if (value instanceof Map) return {t: 'map', v: [...value].map(([a, b]) => [coded(a), coded(b)])};
  if (value instanceof Set) return {t: 'set', v: [...value].map(coded)};
  if (Array.isArray(value)) return {t: 'list', v: value.map(coded)};
  const kind = Object.prototype.toString.call(value).slice(8, -1);
  if (kind === 'Object') return {t: 'object', v: Object.entries(value).map(([k, v]) => [k, coded(v)])};
  throw new Error('holds a ' + kind);
};
const views = {Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array,
  BigInt64Array, BigUint64Array, DataView};
const plain = ({t, v, k}) => {
  switch (t) {
    case undefined: return v;
    case 'undefined': return undefined;
    case 'number': return Number(v);
    case 'bigint': return BigInt(v);
    case 'date': return new Date(v);
    case 'bytes': return new Uint8Array(v).buffer;
    case 'view': return new views[k](new Uint8Array(v).buffer);
    case 'map': return new Map(v.map(([a, b]) => [plain(a), plain(b)]));
    case 'set': return new Set(v.map(plain));
    case 'list': return v.map(plain);
    case 'object': return Object.fromEntries(v.map(([k, v]) => [k, plain(v)]));
  }
};
const done = request => new Promise((good, bad) => {
  request.onsuccess = () => good(request.result);
  request.onerror = () => bad(request.error);
  request.onblocked = () => bad(new Error('is held open by the page'));
});
"""

COPY = f"""
(async limit => {{
  {_CODE}
  if (!globalThis.indexedDB || location.origin === 'null') return [];
  const found = [];
  for (const {{name, version}} of await indexedDB.databases()) {{
    const base = await done(indexedDB.open(name));
    try {{
      const stores = [];
      for (const title of base.objectStoreNames) {{
        const store = base.transaction(title).objectStore(title);
        const indexes = [...store.indexNames].map(each => store.index(each))
          .map(each => ({{name: each.name, path: each.keyPath, unique: each.unique, multiEntry: each.multiEntry}}));
        const [keys, values] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
        const rows = values.map((value, i) => [store.keyPath === null ? coded(keys[i]) : null, coded(value)]);
        stores.push({{title, path: store.keyPath, counts: store.autoIncrement, indexes, rows}});
      }}
      found.push({{name, version, stores}});
    }} catch (error) {{
      return `database ${{name}} ${{error.message}}`;
    }} finally {{ base.close(); }}
  }}
  return JSON.stringify(found).length > limit ? 'its databases are too large' : found;
}})"""
"""All databases of a document's origin; or, as a string, why they cannot be copied. Called with the limit."""

FILL = f"""
(async bases => {{
  {_CODE}
  const wanted = new Set(bases.map(each => each.name));
  for (const {{name}} of await indexedDB.databases()) if (!wanted.has(name)) bases = [...bases, {{name, stores: []}}];
  for (const {{name, version, stores}} of bases) {{
    const asked = version ? indexedDB.open(name, version) : indexedDB.open(name);
    asked.onupgradeneeded = () => {{
      for (const each of stores) {{
        if (asked.result.objectStoreNames.contains(each.title)) continue;
        const made = asked.result.createObjectStore(each.title, {{keyPath: each.path, autoIncrement: each.counts}});
        for (const index of each.indexes) made.createIndex(index.name, index.path, {{unique: index.unique, multiEntry: index.multiEntry}});
      }}
    }};
    const base = await done(asked);
    try {{
      for (const title of base.objectStoreNames) {{
        const work = base.transaction(title, 'readwrite'), store = work.objectStore(title);
        store.clear();
        for (const [key, value] of stores.find(each => each.title === title)?.rows ?? [])
          store.put(plain(value), ...(key ? [plain(key)] : []));
        await new Promise((good, bad) => {{ work.oncomplete = good; work.onabort = work.onerror = () => bad(work.error); }});
      }}
    }} finally {{ base.close(); }}
  }}
}})"""
"""The databases of a document's origin as they were: those that are there already are filled, others made. Called with what COPY gave."""
