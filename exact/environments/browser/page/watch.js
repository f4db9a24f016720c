// Runs first in every document, in our own execution context. `hidden`: selectors of elements that must not be observed; `masked`: style
// rules for masked elements. Defines `exact.quiet(calm, partial)`, which resolves when nothing has changed for `calm` milliseconds and the
// page has no task left;
// `exact.giveUp()`, which stops waiting for parts that change now; and `exact.change(limit)`, which resolves at the next change or after
// `limit` milliseconds. `exact.mark()` returns the document's own time and the number of its changes so far, those of hidden parts left out.
// `exact.since(mark)` returns whether anything has changed since by itself that does not change again and again: a clock, a carousel and a
// chat are told apart, by the number of occasions on which their nodes have changed.
function watch(hidden, masked) {
  if (globalThis.exact) return;
  //= act/listen
  const state = globalThis.exact = {mutations: 0, timers: 0, fired: 0, animating: false};
  //= size
  const rules = hidden ? `:is(${hidden}), :is(${hidden}) * { visibility: hidden !important; pointer-events: none !important }` : '';
  if (rules + masked) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(rules + masked);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }
  const OFTEN = 3, APART = 400, OWN = 1000, MOST = 1000, RECENT = 1000;
  // An animation counts as none after as many milliseconds and drawings without a change. A drawing is waited for that many milliseconds.
  const STILL = 100, DRAWINGS = 6, LATE = 4000;
  // Nodes that change, and elements that move, without end; changing nodes with the time of their last change. And, while something waits,
  // how often each node has changed, and when each element was last seen moving.
  const restless = new Map(), counts = new Map(), carousels = new WeakSet(), moved = new Map();
  const recent = last => performance.now() - last < RECENT;
  let waiting = 0, painted = false, unfinished = false, changes = 0;
  // Timers fired when a wait began, and whether a wait has shown that timers follow timers without end: as a loop that sleeps.
  let firedBefore = 0, endless = false;
  const log = new Map();  // nodes by their last change: its number, its time, and the number of occasions, those after an input left out
  const note = node => {
    const at = performance.now(), {times, at: last} = log.get(node) ?? {times: 0, at: -APART};
    log.delete(node);
    log.set(node, {times: times + (at - last >= APART && at - input >= OWN), at, number: ++changes});
    if (log.size > MOST) log.delete(log.keys().next().value);
  };
  requestAnimationFrame(() => { painted = true; });
  const changed = node => {
    if (waiting) counts.set(node, {times: (counts.get(node)?.times ?? 0) + 1, last: performance.now()});
    if (!restless.has(node)) return true;
    restless.set(node, performance.now());
    return false;
  };
  document.addEventListener('exact-mutation', event => { note(event.target); if (changed(event.target)) state.mutations++; });
  document.addEventListener('exact-timers', event => {
    state.fired += event.detail < state.timers;  // what it does may follow later: the calm after it is a whole one, as after a change
    state.timers = event.detail;
  });
  document.addEventListener('exact-animating', event => { state.animating = event.detail; });
  document.addEventListener('exact-unread', event => { state.unread = String(event.detail); });
  // Scrolling by an input may last for a while; a page that scrolls by itself is not waited for.
  let input = -Infinity;
  for (const type of ['wheel', 'keydown', 'pointerup'])
    document.addEventListener(type, () => { input = performance.now(); }, {capture: true, passive: true});
  document.addEventListener('scroll', () => { state.mutations += performance.now() - input < 800; }, {capture: true, passive: true});
  const unseen = node => hidden && (node.nodeType === 1 ? node : node.parentElement)?.closest(hidden);
  new MutationObserver(records => {
    let seen = false;
    for (const {target} of records) if (!unseen(target)) note(target);
    for (const {target} of records) if (changed(target) && !seen) seen = !unseen(target);
    if (seen) state.mutations++;
  }).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  const moving = () => {
    const finite = each => each.effect?.target && Number.isFinite(each.effect.getComputedTiming().endTime);
    const found = document.getAnimations().filter(each => each.playState === 'running' && finite(each)).map(each => each.effect.target);
    for (const element of found) moved.set(element, performance.now());
    return found.some(element => !carousels.has(element));
  };
  // A tab in the background and a frame out of view are not drawn, and a slow machine draws late. So drawings are waited for longer, until
  // that was in vain.
  let drawn = window === top, drawings = 0;
  const frame = patient => new Promise(next => {
    const timer = setTimeout(() => {
      if (!patient) cancelAnimationFrame(request);
      else drawn = false;
      next();
    }, patient ? LATE : 100);
    const request = requestAnimationFrame(() => {
      drawn = true;
      drawings++;
      clearTimeout(timer);
      setTimeout(next);  // all that the page does in the frame has been done then
    });
  });
  // A timer of our own comes after all of the page's that were due before it, also if the machine is slow.
  const pause = calm => new Promise(next => setTimeout(next, calm));
  // All tasks of the page have run when one of the lowest priority does. A page that always has one is not waited for again.
  let spins = false;
  const rest = async () => {
    if (!spins)
      spins = await Promise.race([scheduler.postTask(() => false, {priority: 'background'}), pause(STILL).then(() => true)]);
  };
  // `partial`: whether the document may be incomplete. Resolves to whether parts of it change without end, whether it was painted, and
  // the addresses of answers whose body the page does not read, as JSON, the document's size, and its mark.
  state.quiet = async (calm, partial) => {
    for (const [node, last] of restless) if (!recent(last)) restless.delete(node);
    const activity = () => state.mutations + (endless ? 0 : state.fired);
    const busy = () => (state.timers > 0 && !endless) || !(partial || unfinished || document.readyState === 'complete') || moving();
    if (!waiting++) {
      [counts, moved].forEach(each => each.clear());
      firedBefore = state.fired;
    }
    try {
      let last = performance.now(), first = drawings;
      const begins = () => state.animating && (performance.now() < last + STILL || (drawn && drawings < first + DRAWINGS));
      for (let before = -1; before !== activity() || busy() || begins(); ) {
        if (before !== activity()) [last, first] = [performance.now(), drawings];
        before = activity();
        await Promise.all([pause(calm), frame(drawn && !partial)]);  // a document that lacks a style sheet is not drawn
        await rest();
      }
    } finally { waiting--; }
    state.animating = false;
    state.unread = '[]';
    document.dispatchEvent(new CustomEvent('exact-unread?'));
    return [restless.size > 0 || [...moved.keys()].some(element => carousels.has(element)), painted, state.unread, state.size(), state.mark()];
  };
  state.giveUp = () => {
    for (const [node, {times, last}] of counts) if (times >= OFTEN && recent(last)) restless.set(node, last);
    for (const [element, last] of moved) if (recent(last)) carousels.add(element);
    endless ||= state.timers > 0 && state.fired - firedBefore >= OFTEN;
    [unfinished, state.timers, state.animating] = [document.readyState !== 'complete', 0, false];
    return [state.size(), state.mark()];
  };
  state.mark = () => [performance.timeOrigin, changes];
  state.since = mark => mark?.[0] !== performance.timeOrigin || [...log].some(([node, {times, number}]) =>
    number > mark[1] && times < OFTEN && node.isConnected);
  state.change = async limit => {
    const before = state.mutations, end = performance.now() + limit;
    while (state.mutations === before && performance.now() < end) await frame(false);
  };
}
