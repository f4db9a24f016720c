// Returns {refused: reason} if the point (x, y) of the document around a frame hits something else than the frame's element. `this` is the
// element of the frame.
function showsFrame(x, y) {
  const node = this;
  //= hits
  const hit = hitAt(x, y);
  return hit === this ? {} : {refused: `is in a frame that is covered by ${words(hit)}`};
}
