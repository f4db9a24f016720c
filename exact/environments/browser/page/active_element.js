// Returns the element with the focus, in open shadow roots too, as a list of at most one.
function active_element() {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at ? [at] : [];
}
