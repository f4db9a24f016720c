// Runs first in every document, among the page's own scripts. Reports changes inside shadow roots, closed ones too, as any other change,
// and applies the style rules `masked` there.
function shadows(masked) {
  const attach = Element.prototype.attachShadow;
  const sheet = masked && new CSSStyleSheet();
  if (sheet) sheet.replaceSync(masked);
  Element.prototype.attachShadow = function attachShadow(...given) {
    const root = attach.apply(this, given);
    const cover = () => {
      if (sheet && !root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
    };
    new MutationObserver(() => { cover(); this.dispatchEvent(new CustomEvent('exact-mutation', {bubbles: true, composed: true, detail: root.textContent.length})); })
      .observe(root, {subtree: true, childList: true, attributes: true, characterData: true});
    cover();
    queueMicrotask(cover);
    return root;
  };
}
