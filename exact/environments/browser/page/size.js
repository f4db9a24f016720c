// Defines `exact.size()`: how many elements the document has, and how many characters its texts, fields and labels have, roughly. It is
// called after every step, so it costs next to nothing. Shadow roots count by their last `exact-mutation`. watch.js includes it.
// `exact.hasClosedText()`: whether a closed shadow root holds text. `exact.size()` also has the parts laid out that the browser skips (`content-visibility: auto`): to ask for a box in one does, and changes nothing else.
const MANY = 5e7, shadows = new Map(), skipped = new Set();
const skip = event => { if (event.skipped) skipped.add(event.target); else skipped.delete(event.target); };
document.addEventListener('contentvisibilityautostatechange', skip, true);
document.addEventListener('DOMContentLoaded', () => {  // shadow roots that no script attached
  for (const roots = [document]; roots.length; ) for (const {shadowRoot} of roots.pop().querySelectorAll('*')) if (shadowRoot) {
    shadowRoot.addEventListener('contentvisibilityautostatechange', skip, true);
    roots.push(shadowRoot);
  }
}, {once: true});
const elements = document.getElementsByTagName('*'), fields = ['input', 'textarea'].map(name => document.getElementsByTagName(name));
document.addEventListener('exact-mutation', event => {
  if (Number.isFinite(event.detail)) shadows.set(event.target, event.detail);
});
state.hasClosedText = () => [...shadows].some(([host, length]) => length > 0 && host.isConnected && !host.shadowRoot);
state.size = () => {
  document.dispatchEvent(new CustomEvent('exact-layout?'));
  for (const each of skipped) {
    if (!each.isConnected) { skipped.delete(each); continue; }
    const content = document.createRange();
    content.selectNodeContents(each);
    content.getBoundingClientRect();
  }
  let characters = document.documentElement?.textContent.length ?? 0;
  for (const list of fields) for (const each of list) characters += each.value.length;
  for (const [host, length] of shadows) if (host.isConnected) characters += length; else shadows.delete(host);
  const labelled = document.querySelectorAll('[aria-labelledby], [aria-describedby]'), said = new Map();
  if (labelled.length * characters > MANY) for (const each of labelled)
    for (const id of `${each.getAttribute('aria-labelledby') ?? ''} ${each.getAttribute('aria-describedby') ?? ''}`.split(/\s+/)) {
      if (id && !said.has(id)) said.set(id, document.getElementById(id)?.textContent.length ?? 0);
      if ((characters += said.get(id) ?? 0) > MANY) break;
    }
  return [elements.length, characters];
};
