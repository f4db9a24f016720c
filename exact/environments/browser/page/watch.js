// Runs first in every document, in our own execution context. `hidden`: selectors of elements that must not be observed; `masked`: style
// rules for masked elements. Defines `exact.quiet(calm)`, which resolves, when nothing has changed for `calm` milliseconds, to the
// addresses of answers whose body the page does not read, as JSON; and `exact.change(limit)`, which resolves at the next change or after
// `limit` milliseconds.
function watch(hidden, masked) {
  if (globalThis.exact) return;
  const state = globalThis.exact = {mutations: 0, timers: 0};
  const rules = hidden ? `:is(${hidden}), :is(${hidden}) * { visibility: hidden !important; pointer-events: none !important }` : '';
  if (rules + masked) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(rules + masked);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }
  document.addEventListener('exact-mutation', () => state.mutations++);
  document.addEventListener('exact-timers', event => { state.timers = event.detail; });
  document.addEventListener('exact-unread', event => { state.unread = String(event.detail); });
  // What an input scrolls may move for a while; a page that scrolls by itself is not waited for.
  let input = -Infinity;
  for (const type of ['wheel', 'keydown', 'pointerup'])
    document.addEventListener(type, () => { input = performance.now(); }, {capture: true, passive: true});
  document.addEventListener('scroll', () => { state.mutations += performance.now() - input < 800; }, {capture: true, passive: true});
  const unseen = node => hidden && (node.nodeType === 1 ? node : node.parentElement)?.closest(hidden);
  new MutationObserver(records => {
    if (!records.every(record => unseen(record.target))) state.mutations++;
  }).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  const moving = () => document.getAnimations().some(
    each => each.playState === 'running' && Number.isFinite(each.effect?.getComputedTiming().endTime));
  const frame = () => new Promise(next => {
    const timer = setTimeout(() => { cancelAnimationFrame(request); next(); }, 100);
    const request = requestAnimationFrame(() => { clearTimeout(timer); next(); });
  });
  // A timer of our own comes after all of the page's that were due before it, also where the machine is slow.
  const pause = calm => new Promise(next => setTimeout(next, calm));
  state.quiet = async calm => {
    const busy = () => state.timers > 0 || document.readyState !== 'complete' || moving();
    for (let before = -1; before !== state.mutations || busy(); ) {
      before = state.mutations;
      await Promise.all([pause(calm), frame()]);
    }
    state.unread = '[]';
    document.dispatchEvent(new CustomEvent('exact-unread?'));
    return state.unread;
  };
  state.change = async limit => {
    const before = state.mutations, end = performance.now() + limit;
    while (state.mutations === before && performance.now() < end) await frame();
  };
}
