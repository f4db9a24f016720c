// Tells what the document shows: {shows: 2} if there is a control to act on, {shows: 1} for text or a picture alone, {shows: 0} for nothing.
// `canvases` are the boxes of canvases, whose content only a screenshot shows; `changes`: whether the document may still change by itself.
// Marks of a page that is busy, animated ones too, are no content. Open shadow roots are read, closed ones count if they hold text.
function content() {
  const controls = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [contenteditable], body [onclick],'
    + ' [role=button], [role=link], [role=checkbox], [role=radio], [role=tab], [role=textbox], [role^=menuitem]';
  const busy = '[aria-busy=true], [role=progressbar], progress, noscript, template, script, style, title';
  const pictures = 'img, svg, video, object, embed', canvases = [];
  const drawn = each => [...each.getClientRects()].some(({width, height}) => width > 1 && height > 1)
    && each.checkVisibility({visibilityProperty: true, opacityProperty: true});
  const turns = each => each.getAnimations({subtree: true}).some(({effect}) => effect?.getComputedTiming().endTime === Infinity)
    || each.querySelector('animate, animateTransform, animateMotion');
  const loaded = each => each.complete ? each.naturalWidth > 1 : each.readyState > 1 || each.matches('svg, object, embed');
  const said = text => {
    const at = text.parentElement ?? text.getRootNode().host, range = document.createRange();
    range.selectNodeContents(text);
    return text.data.trim() && at && !at.closest(busy) && drawn(at) && range.getClientRects().length;
  };
  let shows = 0, changes = document.readyState !== 'complete' || document.getAnimations().length > 0;
  for (const roots = [document]; roots.length && shows < 2; ) {
    const root = roots.pop(), all = root.querySelectorAll('*');
    for (const each of all) {
      if (each.shadowRoot) roots.push(each.shadowRoot);
      if (each.matches('script, iframe, frame, meta[http-equiv=refresh i]') || each.getAttributeNames().some(name => name.startsWith('on'))) changes = true;
      if (each.localName === 'canvas' && drawn(each)) {
        const {x, y, width, height} = each.getBoundingClientRect();
        canvases.push([x, y, width, height]);
      }
      if (each.matches(controls) && !each.closest(busy) && drawn(each)) { shows = 2; break; }
      if (!shows && each.matches(pictures) && !each.closest(busy) && drawn(each) && loaded(each) && !turns(each)) shows = 1;
    }
    for (const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT); !shows && texts.nextNode(); )
      if (said(texts.currentNode)) shows = 1;
  }
  if (!shows && globalThis.exact?.hasClosedText?.()) shows = 1;
  return {shows, canvases, changes};
}
