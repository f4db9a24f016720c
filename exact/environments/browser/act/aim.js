// Returns the point {x, y} to click an element at, after scrolling it into view; {option: true} for an option of a closed drop-down;
// {refused: reason} where the element cannot be clicked. `this` is the element or text node. `covered` accepts a point where something else
// lies on top. `before` holds the scroll positions from before it was scrolled into view, for scroll_back.js; it is absent where nothing
// was scrolled.
function aim(covered) {
  //= scrollers
  let before;
  const mark = () => { before = scrollers(this).map(each => [each.scrollLeft, each.scrollTop]); };
  const element = this.nodeType === 1 ? this : this.parentElement;
  if (!element || !element.isConnected) return {refused: 'has vanished: name an id from the present observation'};
  if (element.closest(':disabled, [aria-disabled="true"]')) return {refused: 'is disabled'};
  if (element.localName === 'option' && !element.getClientRects().length) return {option: true};
  const range = document.createRange();
  const rects = () => {
    if (this.nodeType !== 1) range.selectNodeContents(this);
    return [...(this.nodeType === 1 ? this : range).getClientRects()].filter(each => each.width > 0 || each.height > 0);
  };
  const middle = each => [each.left + each.width / 2, each.top + each.height / 2];
  const within = ([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
  let found = rects();
  if (!found.length) {
    const label = element.labels?.[0];
    if (!label || !label.getClientRects().length) return {refused: 'is not shown'};
    found = [label.getClientRects()[0]];
  }
  if (!within(middle(found[0])) || element.closest('*')?.ownerDocument !== document) {
    mark();
    element.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
    found = rects().length ? rects() : found;
  }
  const roots = [element.getRootNode()];
  while (roots[0].host) roots.unshift(roots[0].host.getRootNode());
  const holds = (hit, node) => {
    for (let at = node; at; at = at.getRootNode().host) if (hit.contains(at)) return true;
    return false;
  };
  const belongs = hit => {
    if (!hit) return false;
    if (element.contains(hit) || holds(hit, element) && getComputedStyle(element).pointerEvents === 'none') return true;
    const label = hit.closest('label');
    return Boolean(label && (label.control === element || label.contains(element)));
  };
  const hitAt = (x, y) => {
    let hit = null;
    for (const [i, root] of roots.entries()) {  // the element's own shadow roots can be asked, closed ones too
      hit = root.elementFromPoint(x, y);
      if (roots[i + 1] && hit !== roots[i + 1].host) break;
    }
    for (let inner; (inner = hit?.shadowRoot?.elementFromPoint(x, y)) && inner !== hit; ) hit = inner;
    return hit;
  };
  let over = null;
  for (const each of found) {
    const [x, y] = middle(each), dx = each.width / 4, dy = each.height / 4;
    for (const [px, py] of [[x, y], [x - dx, y - dy], [x + dx, y + dy], [x - dx, y + dy], [x + dx, y - dy]]) {
      if (covered) return {x: px, y: py, before};
      if (!within([px, py])) continue;
      const hit = hitAt(px, py);
      if (belongs(hit)) return {x: px, y: py, before};
      over = over ?? hit;
    }
  }
  if (!over) return {refused: 'cannot be brought into view', before};
  const words = (over.innerText ?? '').trim().replace(/\s+/g, ' ').slice(0, 40);
  return {refused: `is covered by <${over.localName}>${words ? ' ' + JSON.stringify(words) : ''}`, before};
}
