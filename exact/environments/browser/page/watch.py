"""Scripts that tell when a page has become quiet."""

CALM = 18.0
"""Milliseconds in which a quiet page draws a frame and changes nothing: longer than a frame, and than the tick of usual animations."""

WATCH = """
((hidden, masked) => {
  if (globalThis.exact) return;
  const watch = globalThis.exact = {mutations: 0, timers: 0};
  const rules = hidden ? `:is(${hidden}), :is(${hidden}) * { visibility: hidden !important; pointer-events: none !important }` : '';
  if (rules + masked) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(rules + masked);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }
  document.addEventListener('exact-mutation', () => watch.mutations++);
  document.addEventListener('exact-timers', event => { watch.timers = event.detail; });
  document.addEventListener('exact-unread', event => { watch.unread = String(event.detail); });
  const unseen = node => hidden && (node.nodeType === 1 ? node : node.parentElement)?.closest(hidden);
  new MutationObserver(records => {
    if (!records.every(record => unseen(record.target))) watch.mutations++;
  }).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  const moving = () => document.getAnimations().some(
    each => each.playState === 'running' && Number.isFinite(each.effect?.getComputedTiming().endTime));
  const frame = () => new Promise(next => {
    const timer = setTimeout(() => { cancelAnimationFrame(request); next(); }, 100);
    const request = requestAnimationFrame(() => { clearTimeout(timer); next(); });
  });
  // A timer of our own comes after all of the page's that were due before it, also where the machine is slow.
  const pause = calm => new Promise(next => setTimeout(next, calm));
  watch.quiet = async calm => {
    const busy = () => watch.timers > 0 || document.readyState !== 'complete' || moving();
    for (let before = -1; before !== watch.mutations || busy(); ) {
      before = watch.mutations;
      await Promise.all([pause(calm), frame()]);
    }
    watch.unread = '[]';
    document.dispatchEvent(new CustomEvent('exact-unread?'));
    return watch.unread;
  };
  watch.change = async limit => {
    const before = watch.mutations, end = performance.now() + limit;
    while (watch.mutations === before && performance.now() < end) await frame();
  };
})"""
"""Runs first in every document, in an environment of our own; called with the selectors that are hidden and the rules
for what is masked. Defines `exact.quiet`, which gives the addresses of answers that nobody reads, as JSON, and
`exact.change`."""

TIMERS = """
(soon => {
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
})(500)"""
"""Runs first in every document, among the page's own scripts: counts the timers that a reaction has set and that fire within 500 ms, as
for menus that open with a delay and input that is looked at once it pauses. Those which a timer sets are left out, or a page that looks at
something again and again would never be quiet."""

FETCHES = """
(() => {
  const fetched = window.fetch, answers = new Set();
  window.fetch = function fetch(...given) {
    return fetched.apply(this, given).then(answer => { answers.add(new WeakRef(answer)); return answer; });
  };
  document.addEventListener('exact-unread?', () => {
    const unread = [];
    for (const each of answers) {
      const answer = each.deref();
      if (!answer || answer.bodyUsed || answer.body?.locked) answers.delete(each);
      else unread.push(answer.url);
    }
    document.dispatchEvent(new CustomEvent('exact-unread', {detail: JSON.stringify(unread)}));
  });
})()"""
"""Runs first in every document, among the page's own scripts: tells which answers to `fetch` have a body that nobody has begun to read. The
browser never says of those that they have come to their end, if they may not be stored."""

SHADOWS = """
(masked => {
  const attach = Element.prototype.attachShadow;
  const sheet = masked && new CSSStyleSheet();
  if (sheet) sheet.replaceSync(masked);
  Element.prototype.attachShadow = function attachShadow(...given) {
    const root = attach.apply(this, given);
    const cover = () => {
      if (sheet && !root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
    };
    new MutationObserver(() => { cover(); document.dispatchEvent(new CustomEvent('exact-mutation')); })
      .observe(root, {subtree: true, childList: true, attributes: true, characterData: true});
    cover();
    queueMicrotask(cover);
    return root;
  };
})"""
"""Runs first in every document, among the page's own scripts: what changes inside shadow roots, closed ones too, is told as any change
is; and what is masked is masked there."""
