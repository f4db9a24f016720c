// Guards the next press: lets it through only where it hits what `accepts`. Needs node, element, nearest, hitAt, words, boxes, `accepts`,
// `place`, the element's first box as JSON, and `strict`: whether it must be hit also as the page is drawn next, because the pointer has
// just come and may have changed it. disarm.js ends the guard.
const state = globalThis.exactGuard = {over: '', slipped: false};
let pressed = false;
state.lets = event => {
  const found = () => [event.composedPath()[0], hitAt(event.clientX, event.clientY)];
  if (event.type === 'pointerdown') {
    pressed = strict ? found().every(accepts) : found().some(accepts);
    if (!pressed) state.over = words(event.target);
  }
  if (event.type === 'pointerup' && pressed)
    state.slipped = !found().some(accepts) && node.isConnected && boxes().length > 0 && JSON.stringify(boxes()[0]) !== place;
  const strange = state.slipped && !nearest(event.target)?.contains(element) && Boolean(nearest(event.target));
  return pressed && !strange;
};
//= listen
