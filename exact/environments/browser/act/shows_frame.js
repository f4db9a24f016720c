// Returns {refused: reason} where a frame's element is not what is hit at the point (x, y) of the document that it is in. `this` is the
// element of the frame.
function showsFrame(x, y) {
  const node = this;
  //= hits
  const hit = hitAt(x, y);
  return hit === this ? {} : {refused: `is in a frame that is covered by ${words(hit)}`};
}
