// Returns the middle of the element that was under the pointer, or null if it is not known.
function pointer(state) {
  //= paths
  const element = state.over && at(state.over);
  const box = element?.getBoundingClientRect();
  return box && box.width && box.height ? [box.left + box.width / 2, box.top + box.height / 2] : null;
}
