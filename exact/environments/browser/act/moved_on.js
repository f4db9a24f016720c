// Returns whether the element that aim.js found has moved away from the point (x, y). `rank` and `place` are from the answer of aim.js.
function movedOn(x, y, accepted, place) {
  const {node, hitAt, rank, boxes} = globalThis.exactAim ?? {};
  if (!node?.isConnected) return false;
  return boxes().length > 0 && JSON.stringify(boxes()[0]) !== place && !(rank(hitAt(x, y)) <= accepted);
}
