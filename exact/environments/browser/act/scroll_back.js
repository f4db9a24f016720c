// Undoes the scrolling of aim.js or aim_through_frame.js. `this` is the element, `before` is from their answer.
function scrollBack(before) {
  //= scrollers
  for (const [i, each] of scrollers(this).entries()) each.scrollTo({left: before[i]?.[0], top: before[i]?.[1], behavior: 'instant'});
  return {};
}
