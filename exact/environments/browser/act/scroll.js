// Scrolls what is in the middle of the viewport, or the page, by 80 % of its height. `direction`: 1 is down, -1 is up. Returns whether it
// moved.
function scroll(direction) {
  const steps = element => Math.max(40, Math.round(element.clientHeight * 0.8)) * direction;
  const scrolls = element => element !== document.scrollingElement && element.scrollHeight > element.clientHeight
    && /auto|scroll/.test(getComputedStyle(element).overflowY);
  const move = element => {
    const before = element.scrollTop;
    element.scrollBy({top: steps(element), behavior: 'instant'});
    return element.scrollTop !== before;
  };
  const middle = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
  for (let element = middle; element; element = element.parentElement)
    if (scrolls(element) && move(element)) return true;
  return Boolean(document.scrollingElement && move(document.scrollingElement));
}
