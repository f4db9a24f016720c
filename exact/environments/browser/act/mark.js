// Returns the scroll positions around an element of a frame, as `before` for scroll_back.js.
function mark() {
  //= scrollers
  return {before: scrollers(this).map(each => [each.scrollLeft, each.scrollTop])};
}
