// Returns the beginning of a document that is too large to be read as a whole: {url, title, scroll, nodes, handles}. A node is
// [parent, kind, name, text, attributes, box, styles, value, flags]: `parent` its index, -1 for the document; `box` in CSS pixels of the
// document; `flags` 1 checked, 2 selected, 4 reacts to clicks. At most `most.nodes` nodes, `most.text` characters of one text, and
// `most.texts` of all. The controls among them are kept in `exact.cut`, and `handles` has their indices.
// `said`: a note that the document begins with; may be empty.
function cut(most, names, said) {
  const nodes = [], handles = [], kept = [];
  let left = most.texts;
  const short = text => {
    const limit = Math.min(most.text, left), all = String(text ?? '');
    left -= Math.min(all.length, limit);
    return all.length > limit ? `${all.slice(0, limit)}\u2026` : all;
  };
  const ATTRIBUTES = ['id', 'type', 'role', 'href', 'for', 'tabindex', 'contenteditable', 'disabled', 'readonly', 'required', 'multiple',
    'aria-label', 'aria-hidden', 'aria-checked', 'aria-current', 'aria-disabled', 'aria-expanded', 'aria-pressed', 'aria-selected',
    'aria-sort', 'alt', 'title', 'placeholder', 'value', 'method'];
  const CONTROLS = 'a[href], button, input, select, option, textarea, summary, [role], [tabindex], [onclick], [contenteditable]';
  const SKIPPED = new Set(['SCRIPT', 'STYLE', 'TEMPLATE', 'NOSCRIPT', 'HEAD']);
  const add = (node, parent) => {
    const index = nodes.length, isElement = node.nodeType === 1, style = getComputedStyle(isElement ? node : node.parentElement ?? node.parentNode.host);
    if (style.display === 'none') return -1;
    const isSeen = style.visibility === 'visible';
    if (!isElement && !isSeen) return -1;
    let box = null, styles = [], attributes = [], value = '', flags = 0;
    if (isElement && isSeen) {
      const rect = node.getBoundingClientRect();
      if (node.getClientRects().length) {
        box = [rect.x + scrollX, rect.y + scrollY, rect.width, rect.height];
        styles = names.map(name => style.getPropertyValue(name).slice(0, 200));
      }
      for (const name of ATTRIBUTES) if (node.hasAttribute(name)) attributes.push(name, short(node.getAttribute(name)));
      const secret = node.type === 'password';
      if (node.matches('input, textarea')) value = secret ? '\u2022'.repeat(Math.min(node.value.length, 40)) : short(node.value);
      flags = (node.checked ? 1 : 0) + (node.localName === 'option' && node.selected ? 2 : 0) + (node.onclick ? 4 : 0);
      if (kept.length < most.controls && node.matches(CONTROLS)) handles.push(index), kept.push(node);
    } else if (!isElement) {
      const range = document.createRange();
      if (node.data.length <= most.text) {
        range.selectNode(node);
        const rect = range.getBoundingClientRect();
        if (rect.width + rect.height > 0) box = [rect.x + scrollX, rect.y + scrollY, rect.width, rect.height];
      } else {
        const around = nodes[parent][5];
        if (around) box = [...around];
      }
    }
    nodes.push([parent, node.nodeType, !isElement ? '#text' : isSeen ? node.nodeName : 'DIV', isElement ? '' : short(node.data), attributes, box, styles, value,
      flags]);
    return index;
  };
  nodes.push([-1, 9, '#document', '', [], null, [], '', 0]);
  if (said) nodes.push([0, 1, 'P', '', ['role', 'note', 'aria-label', said], [scrollX, scrollY, 1, 1], [], '', 0]);
  const open = [[document.documentElement, 0]];
  while (open.length && nodes.length < most.nodes && left > 0) {
    const [node, parent] = open.pop();
    const next = node.nextSibling;
    if (next && node !== document.documentElement) open.push([next, parent]);
    if (node.nodeType === 3 ? !node.data.trim() : node.nodeType !== 1 || SKIPPED.has(node.nodeName)) continue;
    const index = add(node, parent);
    if (index < 0) continue;
    const inside = node.shadowRoot?.firstChild ?? node.firstChild;
    if (node.nodeType === 1 && inside) open.push([inside, index]);
  }
  globalThis.exact ??= {};
  globalThis.exact.cut = kept;
  return {url: location.href.slice(0, 4000), title: document.title.slice(0, 500), scroll: [scrollX, scrollY], nodes, handles};
}
