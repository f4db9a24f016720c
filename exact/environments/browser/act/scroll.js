// Scrolls the nearest part of the page around a node that can move further in a direction (up, down, left, right), by 80 % of its size.
// `this` is the node. `hidden`: whether parts count that only scripts scroll. Returns {moved}.
function scroll(way, hidden) {
  const across = way === 'left' || way === 'right', back = way === 'left' || way === 'up';
  const outside = at => at.assignedSlot ?? at.parentElement ?? at.host ?? at.getRootNode().host ?? null;
  for (let at = this.nodeType === 1 ? this : outside(this) ?? document.scrollingElement; at; at = outside(at)) {
    const style = getComputedStyle(at), root = at === document.scrollingElement;
    if (!root && !(hidden ? /auto|scroll|hidden/ : /auto|scroll/).test(across ? style.overflowX : style.overflowY)) continue;
    if (across ? at.scrollWidth <= at.clientWidth : at.scrollHeight <= at.clientHeight) continue;
    const before = across ? at.scrollLeft : at.scrollTop;
    const step = Math.max(40, Math.round((across ? at.clientWidth : at.clientHeight) * 0.8)) * (back ? -1 : 1);
    at.scrollBy({[across ? 'left' : 'top']: step, behavior: 'instant'});
    if ((across ? at.scrollLeft : at.scrollTop) !== before) return {moved: true};
  }
  return {moved: false};
}
