// Records which element receives each press and click, as the page's own listeners would. `data-bench` marks the element that was asked for.
// Nothing is followed or sent: a click has no further effect.
() => {
  const controls = 'a[href], area[href], button, input, select, textarea, option, summary, label, [role=button], [role=link], [role=menuitem]';
  const outside = at => at.assignedSlot ?? at.parentElement ?? at.getRootNode().host ?? null;
  const chain = at => { const found = []; for (; at; at = outside(at)) found.push(at); return found; };
  const place = at => chain(at).map(each => each.localName + [...each.parentNode?.children ?? []].indexOf(each)).join(' ');
  const marked = root => root.querySelector('[data-bench]')
    ?? [...root.querySelectorAll('*')].map(each => each.shadowRoot && marked(each.shadowRoot)).find(Boolean);
  window.heard = [];
  for (const kind of ['mousedown', 'click', 'auxclick']) document.addEventListener(kind, event => {
    const asked = marked(document), around = chain(event.composedPath()[0]), control = around.find(each => each.matches(controls));
    const own = asked && chain(asked).find(each => each.matches(controls));
    const label = around.find(each => each.localName === 'label'), at = around.indexOf(asked);
    const inner = at > 0 && around.slice(0, at).some(each => each.matches(controls) && each !== asked.control);
    const meant = at >= 0 && !inner || own && control === own || label && asked && label.control === asked && (control === label || control === asked);
    window.heard.push([kind, meant ? 'meant' : inner ? 'inside' : 'other', meant ? '' : place(control ?? around[0])]);
    if (kind === 'click') event.preventDefault();
  }, true);
}
