// Ends the hold of hold_scroll.js.
function letScroll() {
  globalThis.exactHold?.abort();
}
