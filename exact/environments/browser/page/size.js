// Defines `exact.size()`: how many elements the document has, and how many characters its texts, its fields and the names that are made of
// them have, roughly. Shadow roots count too: open ones as they are, closed ones as their `exact-mutation` said last. watch.js includes it.
// Counts that passed MANY are not completed.
const MANY = 5e7, closed = new Map();
const LABELS = ['aria-label', 'aria-description', 'aria-placeholder', 'aria-roledescription', 'aria-valuetext', 'title', 'alt', 'placeholder', 'value'];
const NAMED = 'a, button, label, summary, legend, caption, option, tr, td, th, h1, h2, h3, h4, h5, h6, [role]';
document.addEventListener('exact-mutation', event => {
  if (Number.isFinite(event.detail)) closed.set(event.target, event.detail);
});
state.size = () => {
  let elements = 0, characters = 0;
  const add = root => {
    const all = root.querySelectorAll('*');
    elements += all.length;
    characters += (root.documentElement ?? root).textContent.length;
    if (elements > MANY || characters > MANY) return;
    for (const each of root.querySelectorAll('input, textarea')) characters += each.value.length;
    for (const name of LABELS) for (const each of root.querySelectorAll(`[${name}]`)) characters += each.getAttribute(name).length;
    for (const each of root.querySelectorAll(NAMED)) if ((characters += each.textContent.length) > MANY) return;
    const said = new Map();
    for (const each of root.querySelectorAll('[aria-labelledby], [aria-describedby]'))
      for (const id of `${each.getAttribute('aria-labelledby') ?? ''} ${each.getAttribute('aria-describedby') ?? ''}`.split(/\s+/)) {
        if (id && !said.has(id)) said.set(id, root.getElementById?.(id)?.textContent.length ?? 0);
        if ((characters += said.get(id) ?? 0) > MANY) return;
      }
    for (const each of all) if (each.shadowRoot) add(each.shadowRoot);
  };
  add(document);
  for (const [host, length] of closed) if (host.isConnected) { if (!host.shadowRoot) characters += length; } else closed.delete(host);
  return [elements, characters];
};
