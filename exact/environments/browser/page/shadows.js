// Runs first in every document, among the page's own scripts. Reports changes inside shadow roots, closed ones too, as any other change,
// applies the style rules `masked` there, and has the parts laid out that the browser skips (`content-visibility: auto`), as size.js does.
function shadows(masked) {
  const attach = Element.prototype.attachShadow, box = Range.prototype.getBoundingClientRect, skipped = new Set();
  document.addEventListener('exact-layout?', () => {
    for (const each of skipped) {
      if (!each.isConnected) { skipped.delete(each); continue; }
      const content = document.createRange();
      content.selectNodeContents(each);
      box.call(content);
    }
  });
  const sheet = masked && new CSSStyleSheet();
  if (sheet) sheet.replaceSync(masked);
  Element.prototype.attachShadow = function attachShadow(...given) {
    const root = attach.apply(this, given);
    const cover = () => {
      if (sheet && !root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
    };
    new MutationObserver(() => { cover(); this.dispatchEvent(new CustomEvent('exact-mutation', {bubbles: true, composed: true, detail: root.textContent.length})); })
      .observe(root, {subtree: true, childList: true, attributes: true, characterData: true});
    root.addEventListener('contentvisibilityautostatechange', event => {
      if (event.skipped) skipped.add(event.target); else skipped.delete(event.target);
    }, true);
    cover();
    queueMicrotask(cover);
    return root;
  };
}
