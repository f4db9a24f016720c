// Runs first in every document, among the page's own scripts. Reports how many timers are pending that an event handler has set and that
// fire within `soon` milliseconds, as for menus that open with a delay and input that is handled once it pauses. Timers set by timers are
// not counted: a page that polls would never be quiet. Also reports which requests the handlers of timers sent, with the time at which the
// first timer of the chain was set, in milliseconds since 1970.
function timers(soon) {
  const pending = new Set(), later = window.setTimeout, every = window.setInterval, sent = [];
  let inside = 0, since = 0;
  const now = () => performance.timeOrigin + performance.now();
  const tell = () => document.dispatchEvent(new CustomEvent('exact-timers', {detail: pending.size}));
  const done = id => { if (pending.delete(id) && !pending.size) tell(); };
  const nested = (handler, before, set = since || now()) => function (...given) {
    before?.();
    inside++;
    const outer = since;
    since = set;
    try { return handler.apply(this, given); } finally { inside--; since = outer; }
  };
  const note = url => { if (since) sent.push([new URL(url, document.baseURI).href, since]); };
  for (const [holder, name, address] of [
    [window, 'fetch', request => request?.url ?? request], [XMLHttpRequest.prototype, 'open', (_, url) => url],
    [Navigator.prototype, 'sendBeacon', url => url]]) {
    const send = holder[name];
    holder[name] = {[name](...given) {
      try { note(address(...given)); } catch { /* the browser says what is wrong with the address */ }
      return send.apply(this, given);
    }}[name];
  }
  document.addEventListener('exact-sent?', () => {
    document.dispatchEvent(new CustomEvent('exact-sent', {detail: JSON.stringify(sent.splice(0))}));
  });
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
