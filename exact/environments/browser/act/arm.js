// Guards the next press: lets it through only if it hits the element that aim.js found. `x`, `y`, `rank` and `place` are from the answer of
// aim.js. An element that moved when the pointer came gets a frame to come to rest. Returns {missed: reason} if the point no longer hits
// the element, and {changed: true} if its words changed otherwise than by the pointer; nothing is guarded then. disarm.js ends the guard. `wait`:
// whether the pointer is on its way; the guard waits until the page has dealt with it and has drawn a frame that it requested, or another
// guard is requested.
async function arm(x, y, accepted, place, wait = false) {
  const {node, element, nearest, chain, hitAt, rank, words, boxes, reworded, allow, came} = globalThis.exactAim ?? {};
  globalThis.exactArming?.abort();
  const arming = globalThis.exactArming = new AbortController();
  const frame = () => new Promise(next => { requestAnimationFrame(next); setTimeout(next, 100); });
  if (wait) {
    await came;
    let draws = true;  // if the page does not tell
    addEventListener('exact-draws', event => { draws = event.detail; }, {capture: true, once: true});
    document.dispatchEvent(new CustomEvent('exact-draws?'));
    if (draws) await frame();
    if (arming.signal.aborted) return {};
  }
  if (!node?.isConnected) return {missed: 'has vanished while it was pointed at'};
  const moved = () => JSON.stringify(boxes()[0]) !== place;
  const accepts = hit => rank(hit) <= accepted;
  reworded(node);  // takes note of what the pointer changed
  if (moved()) await frame();
  if (reworded(node)) return {changed: true};
  const hit = hitAt(x, y);
  const away = !hit || chain(element).includes(hit);
  if (!accepts(hit)) return {missed: away ? 'moves away when it is pointed at' : `is covered by ${words(hit)} while it is pointed at`};
  const state = globalThis.exactGuard = {over: '', slipped: false, changed: false, released: 0};
  let pressed = false;
  state.lets = event => {
    const found = () => [event.composedPath()[0], hitAt(event.clientX, event.clientY)];
    if (event.type === 'pointerdown' && state.released >= state.due) {
      globalThis.exactGuard = undefined;
      return true;
    }
    if (event.type === 'pointerdown') {
      state.changed = node.isConnected && reworded(node);
      pressed = !state.changed && found().some(accepts);
      if (pressed) allow(node);
      else state.over = words(event.target);
    }
    if (event.type === 'pointerup' && pressed && node.isConnected && reworded(node)) {  // it means another element by now
      state.changed = true;
      pressed = false;
    }
    if (event.type === 'pointerup' && pressed) state.slipped = !found().some(accepts) && node.isConnected && boxes().length > 0 && moved();
    if (event.type === 'pointerup') {
      state.released += 1;
      state.onRelease?.();
    }
    const strange = state.slipped && !nearest(event.target)?.contains(element) && Boolean(nearest(event.target));
    return pressed && !strange;
  };
  place = JSON.stringify(boxes()[0]);
  //= listen
  return {};
}
