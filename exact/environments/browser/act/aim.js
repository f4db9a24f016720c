// Returns a point at which an element is hit, as {x, y, way, rank, frame, place, before}; {option: true} for an option of a closed
// drop-down; {refused: reason} if the element cannot be clicked. `this` is the element or text node. It is scrolled into view if necessary,
// in each way in turn until nothing covers it; `from` is the number of the first way, 0 for no scrolling. `all` tries more points before it
// is scrolled, `covered` accepts a point that something else covers. `before` holds the scroll positions from before, for scroll_back.js;
// it is absent if nothing was scrolled. `frame`: whether the hit is a frame in the element. The rest is for arm.js. `presses`: whether a
// press follows, which takes the focus from a field and may so enable a disabled element; `left`: whether it did not. {changed: true} if its
// words have changed since same.js or the pointer was there.
async function aim(from, all, covered, presses) {
  const node = this;
  if (!node.isConnected || node.nodeType !== 1 && !node.parentElement) return {vanished: true};
  //= scrollers
  //= hits
  //= boxes
  //= said
  if (reworded(node)) return {changed: true};
  const disabled = () => Boolean(element.closest('button, input, select, textarea, option, optgroup')?.matches(':disabled')
    || element.closest('[aria-disabled="true"]'));
  if (disabled()) {
    let field = document.activeElement;
    while (field?.shadowRoot?.activeElement) field = field.shadowRoot.activeElement;
    const leaves = field?.matches('input, textarea, select') || field?.isContentEditable;
    if (!presses || !boxes().length || !leaves || chain(element).includes(field)) return {refused: 'is disabled'};
    field.blur();
    await new Promise(next => { requestAnimationFrame(next); setTimeout(next, 100); });
    if (!node.isConnected) return {vanished: true, left: true};
    if (disabled()) {
      field.focus({preventScroll: true});
      return {refused: 'is disabled', left: true};
    }
  }
  if (element.localName === 'option' && !element.getClientRects().length) return {option: true};
  if (!boxes().length) return {refused: 'is not shown'};
  const ways = [null, 'center', 'nearest', 'end', 'start'];
  const anchor = () => {
    const found = [...element.localName === 'area' ? element.getRootNode().querySelectorAll('[usemap]') : [],
      element, ...element.querySelectorAll('*'), ...element.labels ?? []];
    return found.find(each => drawn(each.getClientRects()).length) ?? element;
  };
  const bring = way => {
    anchor().scrollIntoView({block: way, inline: way, behavior: 'instant'});
    for (const each of scrollers(node)) {
      const [x, y] = middle(boxes()[0]), root = each === document.scrollingElement;
      if (within([x, y]) && node.nodeType === 1 && element.localName !== 'area' || each.ownerDocument !== document) break;
      if (!root && getComputedStyle(each).overflow === 'visible') continue;
      const {left, top, width, height} = root ? new DOMRect(0, 0, innerWidth, innerHeight) : each.getBoundingClientRect();
      if (x < left || x >= left + width || y < top || y >= top + height)
        each.scrollBy({left: x - left - width / 2, top: y - top - height / 2, behavior: 'instant'});
    }
  };
  const frame = hit => Boolean(hit?.matches('iframe, frame, object, embed'));
  const choose = many => {
    let best, inner;
    for (const [x, y] of covered ? [middle(boxes()[0])] : points(many)) {
      const hit = covered ? null : hitAt(x, y), found = covered ? 0 : rank(hit);
      if (found === 0) { best = {x, y, rank: 0, frame: frame(hit)}; break; }
      if (found === 1) inner ??= {x, y, rank: 1, frame: frame(hit)};
      else over ??= hit;
    }
    return best ?? inner;
  };
  const pointer = () => {  // notes that it came, unless the words had changed before; returns a promise of it, for arm.js
    globalThis.exactComing?.abort();
    const {signal} = globalThis.exactComing = new AbortController();
    const channel = new MessageChannel();  // its messages come after the events that the pointer causes, and are not throttled as timers
    addEventListener('pointermove', () => channel.port2.postMessage(0), {capture: true, once: true});
    for (const kind of ['pointerover', 'pointermove']) addEventListener(kind, event => {
      if (!event.isTrusted) return;
      globalThis.exactComing.abort();
      allow(node);
    }, {capture: true, signal});
    return new Promise(next => { channel.port1.onmessage = next; });
  };
  let over = null, before;
  for (let way = from; way < ways.length; way++) {
    if (ways[way]) {
      before ??= scrollers(node).map(each => [each.scrollLeft, each.scrollTop]);
      bring(ways[way]);
      if (!element.checkVisibility({contentVisibilityAuto: true})) {  // it is rendered in the next frames
        await new Promise(next => { requestAnimationFrame(() => requestAnimationFrame(next)); setTimeout(next, 100); });
        bring(ways[way]);
      }
    }
    const found = choose(all || way > 0);
    if (!found || covered && way === 0 && !within([found.x, found.y])) continue;
    if (before) await new Promise(next => { requestAnimationFrame(next); setTimeout(next, 100); });  // the page hears of it
    globalThis.exactAim = {node, element, nearest, chain, hitAt, rank, words, boxes, reworded, allow, came: pointer()};
    return {...found, way, place: JSON.stringify(boxes()[0]), before};
  }
  if (getComputedStyle(element).visibility !== 'visible') return {refused: 'is not shown', before};
  if (!over || over === element || over.contains(element)) return {refused: 'cannot be brought into view', before};
  return {refused: `is covered by ${words(over)}`, before};
}
