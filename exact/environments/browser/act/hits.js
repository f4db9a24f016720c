// The element that is hit at a point of the viewport, and whether that is the element of `node` (an element or a text node). `hitAt(x, y)`
// returns the element hit, in shadow roots too. `rank(hit)` returns 0 if the hit is the element, a part of it, or a label of it; 1 if it is
// a separate control inside it; and undefined otherwise. `words(hit)` names a hit.
const element = node.nodeType === 1 ? node : node.parentElement;
const controls = 'a[href], area[href], button, input, select, textarea, option, summary, label, [contenteditable=""], [contenteditable=true],'
  + ' [role=button], [role=link], [role=checkbox], [role=radio], [role=switch], [role=tab], [role=option], [role^=menuitem]';
const outside = at => at.assignedSlot ?? at.parentElement ?? at.getRootNode().host ?? null;
const chain = at => { const found = []; for (; at; at = outside(at)) found.push(at); return found; };
const nearest = at => chain(at).find(each => each.matches(controls));
const owner = nearest(element) ?? element;  // a point of a button serves for all that is in the button
const roots = [element.getRootNode()];
while (roots[0].host) roots.unshift(roots[0].host.getRootNode());
const hitAt = (x, y) => {
  let hit = null;
  for (const [i, root] of roots.entries()) {  // the element's own shadow roots can be asked, closed ones too
    hit = root.elementFromPoint(x, y);
    if (roots[i + 1] && hit !== roots[i + 1].host) break;
  }
  for (let inner; (inner = hit?.shadowRoot?.elementFromPoint(x, y)) && inner !== hit; ) hit = inner;
  return hit;
};
const slotted = at => [...owner.querySelectorAll('slot')].some(slot => slot.assignedNodes({flatten: true}).includes(at));
const rank = hit => {
  if (!hit) return undefined;
  let inside = 0;
  for (const at of chain(hit)) {
    if (at === owner || roots.length > 1 && slotted(at)) return inside;
    if (at.localName === 'label' && at.control === owner && !inside) return 0;
    if (at.matches(controls) && !(owner.localName === 'label' && at === owner.control)) inside = 1;
  }
  if (hit.localName === 'area' && owner.useMap && owner.useMap === `#${hit.closest('map')?.name}`) return 1;
  const unhit = at => getComputedStyle(at).pointerEvents === 'none';
  return unhit(element) && !hit.matches('html, body') && chain(element).find(at => !unhit(at)) === hit ? 0 : undefined;
};
const words = hit => {
  const text = (hit?.innerText || hit?.getAttribute('aria-label') || '').trim().replace(/\s+/g, ' ').slice(0, 40);
  return `<${hit?.localName ?? 'nothing'}>${text ? ' ' + JSON.stringify(text) : ''}`;
};
