"""Functions that run in our own world of a page, with an element as `this`. Each answers `{refused: why}` where the action does not fit."""

AIM = """
function (covered) {
  const element = this.nodeType === 1 ? this : this.parentElement;
  if (!element || !element.isConnected) return {refused: 'has vanished: name an id from the present observation'};
  if (element.closest(':disabled, [aria-disabled="true"]')) return {refused: 'is disabled'};
  if (element.localName === 'option' && !element.getClientRects().length) return {option: true};
  const range = document.createRange();
  const rects = () => {
    if (this.nodeType !== 1) range.selectNodeContents(this);
    return [...(this.nodeType === 1 ? this : range).getClientRects()].filter(each => each.width > 0 || each.height > 0);
  };
  const middle = each => [each.left + each.width / 2, each.top + each.height / 2];
  const within = ([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
  let found = rects();
  if (!found.length) {
    const label = element.labels?.[0];
    if (!label || !label.getClientRects().length) return {refused: 'is not shown'};
    found = [label.getClientRects()[0]];
  }
  if (!within(middle(found[0])) || element.closest('*')?.ownerDocument !== document) {
    element.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
    found = rects().length ? rects() : found;
  }
  const belongs = hit => {
    if (!hit) return false;
    if (element.contains(hit) || hit.contains(element) && getComputedStyle(element).pointerEvents === 'none') return true;
    if (hit.shadowRoot && hit.contains(element.getRootNode().host ?? null)) return true;
    const label = hit.closest('label');
    return Boolean(label && (label.control === element || label.contains(element)));
  };
  const hitAt = (x, y) => {
    let hit = document.elementFromPoint(x, y);
    for (let inner; (inner = hit?.shadowRoot?.elementFromPoint(x, y)) && inner !== hit; ) hit = inner;
    return hit;
  };
  let over = null;
  for (const each of found) {
    const [x, y] = middle(each), dx = each.width / 4, dy = each.height / 4;
    for (const [px, py] of [[x, y], [x - dx, y - dy], [x + dx, y + dy], [x - dx, y + dy], [x + dx, y - dy]]) {
      if (covered) return {x: px, y: py};
      if (!within([px, py])) continue;
      const hit = hitAt(px, py);
      if (belongs(hit)) return {x: px, y: py};
      over = over ?? hit;
    }
  }
  if (!over) return {refused: 'cannot be brought into view'};
  const words = (over.innerText ?? '').trim().replace(/\\s+/g, ' ').slice(0, 40);
  return {refused: `is covered by <${over.localName}>${words ? ' ' + JSON.stringify(words) : ''}`};
}"""

FOCUS = """
function (text) {
  const element = this.nodeType === 1 ? this : this.parentElement;
  if (!element || !element.isConnected) return {refused: 'has vanished: name an id from the present observation'};
  const kind = element.localName === 'input' ? element.type : element.localName;
  const typed = ['text', 'search', 'email', 'url', 'tel', 'password', 'number', 'textarea'];
  const given = ['date', 'time', 'datetime-local', 'month', 'week', 'color', 'range'];
  if (!typed.includes(kind) && !given.includes(kind) && !element.isContentEditable) return {refused: 'is not a field that can be filled'};
  if (element.disabled || element.closest('[aria-disabled="true"]')) return {refused: 'is disabled'};
  if (element.readOnly) return {refused: 'is read-only'};
  if (given.includes(kind)) {
    const probe = element.cloneNode();
    probe.value = text;
    if (probe.value.toLowerCase() !== text.toLowerCase()) {
      const date = '2024-01-31', time = '13:45';
      const forms = {date, time, 'datetime-local': `${date}T${time}`, month: '2024-01', week: '2024-W05', color: '#ff8800'};
      const form = forms[kind] ?? `a number from ${element.min || 0} to ${element.max || 100}`;
      return {refused: `does not take ${JSON.stringify(text)}: write ${form}`};
    }
  }
  element.scrollIntoView({block: 'nearest', inline: 'nearest', behavior: 'instant'});
  element.focus({preventScroll: true});
  if (given.includes(kind)) {
    if (element.value !== text) {
      element.value = text;
      element.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
      element.dispatchEvent(new Event('change', {bubbles: true}));
    }
    return {done: true};
  }
  if (element.select) element.select(); else getSelection().selectAllChildren(element);
  return {done: false};
}"""

SELECT = """
function (label) {
  let element = this.nodeType === 1 ? this : this.parentElement, option = null;
  if (!element || !element.isConnected) return {refused: 'has vanished: name an id from the present observation'};
  if (label === null) { option = element; element = element.closest('select'); }
  if (!element || element.localName !== 'select') return {refused: 'is not a native drop-down: click it and then the option'};
  const flat = text => text.trim().replace(/\\s+/g, ' ');
  if (!option) {
    const options = [...element.options], wanted = flat(label), folded = wanted.toLowerCase();
    option = options.find(each => flat(each.label) === wanted) ?? options.find(each => flat(each.label).toLowerCase() === folded)
      ?? options.find(each => each.value === label);
    if (!option) return {labels: options.map(each => flat(each.label))};
  }
  if (element.matches(':disabled')) return {refused: 'is disabled'};
  if (option.disabled || option.closest('optgroup')?.disabled) return {refused: `has ${JSON.stringify(flat(option.label))} disabled`};
  element.focus();
  if (!option.selected) {
    option.selected = true;
    element.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
    element.dispatchEvent(new Event('change', {bubbles: true}));
  }
  return {done: true};
}"""

SCROLL = """
direction => {
  const steps = element => Math.max(40, Math.round(element.clientHeight * 0.8)) * direction;
  const scrolls = element => element !== document.scrollingElement && element.scrollHeight > element.clientHeight
    && /auto|scroll/.test(getComputedStyle(element).overflowY);
  const move = element => {
    const before = element.scrollTop;
    element.scrollBy({top: steps(element), behavior: 'instant'});
    return element.scrollTop !== before;
  };
  const middle = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
  for (let element = middle; element; element = element.parentElement)
    if (scrolls(element) && move(element)) return true;
  return Boolean(document.scrollingElement && move(document.scrollingElement));
}"""
