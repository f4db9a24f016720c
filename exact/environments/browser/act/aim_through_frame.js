// Returns where the point (x, y) of a frame's content is in the document around the frame, after scrolling it into view. `this` is the
// frame's element. `covered` and `before` are as in aim.js.
function aimThroughFrame(x, y, covered) {
  //= scrollers
  let before;
  const mark = () => { before = scrollers(this).map(each => [each.scrollLeft, each.scrollTop]); };
  const at = () => {
    const box = this.getBoundingClientRect(), style = getComputedStyle(this);
    return [box.left + this.clientLeft + parseFloat(style.paddingLeft) + x, box.top + this.clientTop + parseFloat(style.paddingTop) + y];
  };
  const within = ([px, py]) => px >= 0 && py >= 0 && px < innerWidth && py < innerHeight;
  if (!within(at())) {
    mark();
    this.scrollIntoView({block: 'nearest', inline: 'nearest', behavior: 'instant'});
    const [px, py] = at();
    if (!within([px, py])) scrollBy({left: px - innerWidth / 2, top: py - innerHeight / 2, behavior: 'instant'});
  }
  const [px, py] = at();
  if (covered) return {x: px, y: py, before};
  if (!within([px, py])) return {refused: 'cannot be brought into view: its frame shows no more of it', before};
  const hit = this.getRootNode().elementFromPoint(px, py);
  if (hit === this) return {x: px, y: py, before};
  const words = (hit?.innerText ?? '').trim().replace(/\s+/g, ' ').slice(0, 40);
  return {refused: `is in a frame that is covered by <${hit?.localName}>${words ? ' ' + JSON.stringify(words) : ''}`, before};
}
