// Holds the scrollers of the next drag until the button is released or let_scroll.js is run. While a drag is near an edge of a scroller or
// beyond it, a browser scrolls with each frame that it draws, so a slow machine would end in another state than a fast one. Scrolling by
// the page itself during an event of the drag stays, and so does scrolling away from the pointer.
function holdScroll() {
  //= scrollers
  const belt = 20;  // pixels inside of an edge from which a browser scrolls
  globalThis.exactHold?.abort();
  const hold = globalThis.exactHold = new AbortController(), held = new Map(), root = document.scrollingElement;
  let pointer;
  const listen = (at, kinds, does, capture) => {
    for (const kind of kinds) at.addEventListener(kind, event => event.isTrusted && does(event), {capture, signal: hold.signal});
  };
  const place = at => [at.scrollLeft, at.scrollTop];
  const pulled = (by, at, low, high) => by < 0 && at < low + belt || by > 0 && at > high - belt;
  const keep = at => {
    const [left, top] = held.get(at), [x, y] = place(at);
    const box = at === root ? new DOMRect(0, 0, innerWidth, innerHeight) : at.getBoundingClientRect();
    const kept = pointer
      ? [pulled(x - left, pointer[0], box.left, box.right) ? left : x, pulled(y - top, pointer[1], box.top, box.bottom) ? top : y] : [x, y];
    held.set(at, kept);
    if (kept[0] !== x || kept[1] !== y) at.scrollTo({left: kept[0], top: kept[1], behavior: 'instant'});
  };
  const note = node => {
    for (const at of scrollers(node)) {
      if (at.ownerDocument !== document || held.has(at)) continue;
      held.set(at, place(at));
      listen(at === root ? document : at, ['scroll'], () => keep(at), true);
    }
  };
  const points = ['pointerdown', 'pointermove', 'dragenter', 'dragleave', 'dragover'];
  listen(window, points, event => {
    if (event.type === 'pointerdown' || pointer) pointer = [event.clientX, event.clientY];
    note(event.composedPath()[0]);
  }, true);
  const settle = () => held.forEach((_, at) => held.set(at, place(at)));
  listen(window, [...points, 'mousedown', 'mousemove', 'drag'], settle, false);  // after the page has dealt with it
  listen(window, ['pointerup', 'drop', 'dragend'], () => hold.abort(), true);
  const aimed = globalThis.exactAim?.element;  // in a closed shadow root no event names it
  if (aimed) note(aimed);
}
