// Runs first in every document, among the page's own scripts. Reports how many timers are pending that an event handler has set and that
// fire within `soon` milliseconds, as for menus that open with a delay and input that is handled once it pauses. Timers set by timers are
// not counted: a page that polls would never be quiet. Reports whether an animation is under way that no timer began, which at first may
// change nothing: frame after frame is requested, or there is an interval of `ticks` milliseconds at most. Also reports which requests the
// handlers of timers sent, with the time at which the first timer of the chain was set, in milliseconds since 1970; and, if asked, whether
// the page has asked for a frame.
function timers(soon, ticks) {
  const pending = new Set(), animating = new Set(), sent = [];
  const later = window.setTimeout, every = window.setInterval, draw = window.requestAnimationFrame;
  let inside = 0, since = 0, drawing = false;
  const now = () => performance.timeOrigin + performance.now();
  const tell = () => document.dispatchEvent(new CustomEvent('exact-timers', {detail: pending.size}));
  const animate = change => {  // returns the time at which the last animation ended or the first one began
    const before = animating.size > 0;
    change();
    if (animating.size > 0 !== before) document.dispatchEvent(new CustomEvent('exact-animating', {detail: animating.size > 0}));
  };
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
  document.addEventListener('exact-draws?', () => {
    document.dispatchEvent(new CustomEvent('exact-draws', {detail: [...animating].some(key => typeof key === 'string')}));
  });
  window.setTimeout = function setTimeout(handler, delay, ...given) {
    if (typeof handler !== 'function') return later(handler, delay, ...given);
    const id = later(nested(handler, () => done(id)), delay, ...given);
    if (!inside && !(delay > soon) && pending.add(id).size === 1) tell();
    return id;
  };
  window.setInterval = function setInterval(handler, delay, ...given) {
    const id = every(typeof handler === 'function' ? nested(handler) : handler, delay, ...given);
    if (!inside && !(delay > ticks)) animate(() => animating.add(id));
    return id;
  };
  window.requestAnimationFrame = function requestAnimationFrame(handler) {
    if (typeof handler !== 'function') return draw(handler);
    const counts = !inside || drawing;
    const id = draw(now => {
      const outer = drawing;
      drawing = counts;
      try { handler(now); } finally {
        drawing = outer;
        animate(() => animating.delete(key));
      }
    });
    const key = `frame ${id}`;
    if (counts) animate(() => animating.add(key));
    return id;
  };
  for (const [name, key] of [['clearTimeout', id => id], ['clearInterval', id => id], ['cancelAnimationFrame', id => `frame ${id}`]]) {
    const clear = window[name];
    window[name] = id => { done(key(id)); animate(() => animating.delete(key(id))); clear(id); };
  }
}
