// Makes the next letter the first of a word for a drop-down that has the focus. A drop-down adds letters that come within a second to the
// same word, so the choice of an action would depend on how soon it follows the last one. Losing the focus ends a word; the page does not
// notice. Returns whether an element has the focus that keys can be meant for.
function newWord() {
  let at = document.activeElement;
  for (let inner; (inner = at?.shadowRoot?.activeElement ?? at?.contentDocument?.activeElement); ) at = inner;
  if (!at || at.matches('html, body') && !at.isContentEditable && at.ownerDocument.designMode !== 'on') return false;
  if (at.localName !== 'select') return true;
  const view = at.ownerDocument.defaultView, unheard = ['blur', 'focusout', 'focus', 'focusin'];
  const hush = event => event.stopImmediatePropagation();
  for (const each of unheard) view.addEventListener(each, hush, true);
  at.blur();
  at.focus({preventScroll: true});
  for (const each of unheard) view.removeEventListener(each, hush, true);
  return true;
}
