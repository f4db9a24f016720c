// Runs first in every document, among the page's own scripts. Reports how many timers are pending that an event handler has set and that
// fire within `soon` milliseconds, as for menus that open with a delay and input that is handled once it pauses. Timers set by timers are
// not counted: a page that polls would never be quiet.
function timers(soon) {
  const pending = new Set(), later = window.setTimeout, every = window.setInterval;
  let inside = 0;
  const tell = () => document.dispatchEvent(new CustomEvent('exact-timers', {detail: pending.size}));
  const done = id => { if (pending.delete(id) && !pending.size) tell(); };
  const nested = (handler, before) => function (...given) {
    before?.();
    inside++;
    try { return handler.apply(this, given); } finally { inside--; }
  };
  window.setTimeout = function setTimeout(handler, delay, ...given) {
    if (typeof handler !== 'function') return later(handler, delay, ...given);
    const id = later(nested(handler, () => done(id)), delay, ...given);
    if (!inside && !(delay > soon) && pending.add(id).size === 1) tell();
    return id;
  };
  window.setInterval = function setInterval(handler, delay, ...given) {
    return every(typeof handler === 'function' ? nested(handler) : handler, delay, ...given);
  };
  for (const name of ['clearTimeout', 'clearInterval']) {
    const clear = window[name];
    window[name] = id => { done(id); clear(id); };
  }
}
