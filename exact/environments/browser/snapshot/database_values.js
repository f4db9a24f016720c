// Helpers of the database scripts: values of IndexedDB to JSON and back, and requests as promises.
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
