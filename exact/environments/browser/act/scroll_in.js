// Scrolls the nearest ancestor that can move further in a direction (up, down, left, right), by 80 % of its size. Returns {moved}.
function scrollIn(way) {
  const across = way === 'left' || way === 'right', back = way === 'left' || way === 'up';
  for (let at = this.nodeType === 1 ? this : this.parentElement; at; at = at.parentElement ?? at.getRootNode().host) {
    const style = getComputedStyle(at), root = at === document.scrollingElement;
    if (!root && !/auto|scroll|hidden/.test(across ? style.overflowX : style.overflowY)) continue;
    if (across ? at.scrollWidth <= at.clientWidth : at.scrollHeight <= at.clientHeight) continue;
    const before = across ? at.scrollLeft : at.scrollTop;
    const step = Math.max(40, Math.round((across ? at.clientWidth : at.clientHeight) * 0.8)) * (back ? -1 : 1);
    at.scrollBy({[across ? 'left' : 'top']: step, behavior: 'instant'});
    if ((across ? at.scrollLeft : at.scrollTop) !== before) return {moved: true};
  }
  return {moved: false};
}
