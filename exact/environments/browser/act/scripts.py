"""Functions that run in our own environment of a page, with an element as `this`. Each answers `{refused: why}` where the action does not
fit."""

_AROUND = """
  const around = () => {
    const found = [];
    for (let at = this.nodeType === 1 ? this : this.parentElement; at; ) {
      found.push(at);
      at = at.assignedSlot ?? at.parentElement ?? at.getRootNode().host ?? at.ownerDocument.defaultView?.frameElement;
    }
    return found;
  };"""
"""All that may scroll when an element is brought into view; frames around it of its own origin too."""

_BEFORE = (
    _AROUND
    + """
  let before;
  const mark = () => { before = around().map(each => [each.scrollLeft, each.scrollTop]); };"""
)
"""`mark` notes where all that may scroll stands."""

AIM = (
    "function (covered) {"
    + _BEFORE
    + """
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
    mark();
    element.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
    found = rects().length ? rects() : found;
  }
  const roots = [element.getRootNode()];
  while (roots[0].host) roots.unshift(roots[0].host.getRootNode());
  const holds = (hit, node) => {
    for (let at = node; at; at = at.getRootNode().host) if (hit.contains(at)) return true;
    return false;
  };
  const belongs = hit => {
    if (!hit) return false;
    if (element.contains(hit) || holds(hit, element) && getComputedStyle(element).pointerEvents === 'none') return true;
    const label = hit.closest('label');
    return Boolean(label && (label.control === element || label.contains(element)));
  };
  const hitAt = (x, y) => {
    let hit = null;
    for (const [i, root] of roots.entries()) {  // the element's own shadow roots can be asked, closed ones too
      hit = root.elementFromPoint(x, y);
      if (roots[i + 1] && hit !== roots[i + 1].host) break;
    }
    for (let inner; (inner = hit?.shadowRoot?.elementFromPoint(x, y)) && inner !== hit; ) hit = inner;
    return hit;
  };
  let over = null;
  for (const each of found) {
    const [x, y] = middle(each), dx = each.width / 4, dy = each.height / 4;
    for (const [px, py] of [[x, y], [x - dx, y - dy], [x + dx, y + dy], [x - dx, y + dy], [x + dx, y - dy]]) {
      if (covered) return {x: px, y: py, before};
      if (!within([px, py])) continue;
      const hit = hitAt(px, py);
      if (belongs(hit)) return {x: px, y: py, before};
      over = over ?? hit;
    }
  }
  if (!over) return {refused: 'cannot be brought into view', before};
  const words = (over.innerText ?? '').trim().replace(/\\s+/g, ' ').slice(0, 40);
  return {refused: `is covered by <${over.localName}>${words ? ' ' + JSON.stringify(words) : ''}`, before};
}"""
)
"""Where to click. `before`: where all stood that was scrolled to bring it into view, for SCROLL_BACK; nothing if it was there."""

THROUGH = (
    "function (x, y, covered) {"
    + _BEFORE
    + """
  const at = () => {
    const box = this.getBoundingClientRect(), style = getComputedStyle(this);
    return [box.left + this.clientLeft + parseFloat(style.paddingLeft) + x, box.top + this.clientTop + parseFloat(style.paddingTop) + y];
  };
  const within = ([px, py]) => px >= 0 && py >= 0 && px < innerWidth && py < innerHeight;
  if (!within(at())) {
    mark();
    this.scrollIntoView({block: 'nearest', inline: 'nearest', behavior: 'instant'});
    const [px, py] = at();
    if (!within([px, py])) scrollBy({left: px - innerWidth / 2, top: py - innerHeight / 2, behavior: 'instant'});
  }
  const [px, py] = at();
  if (covered) return {x: px, y: py, before};
  if (!within([px, py])) return {refused: 'cannot be brought into view: its frame shows no more of it', before};
  const hit = this.getRootNode().elementFromPoint(px, py);
  if (hit === this) return {x: px, y: py, before};
  const words = (hit?.innerText ?? '').trim().replace(/\\s+/g, ' ').slice(0, 40);
  return {refused: `is in a frame that is covered by <${hit?.localName}>${words ? ' ' + JSON.stringify(words) : ''}`, before};
}"""
)
"""Of a frame's element in the document around it: where a point of the frame is there. `before` as in AIM."""

SCROLL_BACK = (
    "function (before) {"
    + _AROUND
    + """
  for (const [i, each] of around().entries()) each.scrollTo({left: before[i]?.[0], top: before[i]?.[1], behavior: 'instant'});
  return {};
}"""
)
"""Undoes what AIM or THROUGH scrolled."""

FOCUS = """
async function (text) {
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
  const end = performance.now() + 1000;
  while (globalThis.exact?.timers && performance.now() < end) await new Promise(next => setTimeout(next, 5));
  if (element.select) element.select(); else getSelection().selectAllChildren(element);
  return {done: false};
}"""
"""Makes a field ready to be typed in, and lets the page do first what it does about the focus: whether a date picker that opens after a
moment sees what is typed would hang on how fast it is."""

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

SCROLL_IN = """
function (way) {
  const across = way === 'left' || way === 'right', back = way === 'left' || way === 'up';
  for (let at = this.nodeType === 1 ? this : this.parentElement; at; at = at.parentElement ?? at.getRootNode().host) {
    const style = getComputedStyle(at), root = at === document.scrollingElement;
    if (!root && !/auto|scroll|hidden/.test(across ? style.overflowX : style.overflowY)) continue;
    if (across ? at.scrollWidth <= at.clientWidth : at.scrollHeight <= at.clientHeight) continue;
    const before = across ? at.scrollLeft : at.scrollTop;
    const step = Math.max(40, Math.round((across ? at.clientWidth : at.clientHeight) * 0.8)) * (back ? -1 : 1);
    at.scrollBy({[across ? 'left' : 'top']: step, behavior: 'instant'});
    if ((across ? at.scrollLeft : at.scrollTop) !== before) return {moved: true};
  }
  return {moved: false};
}"""

UPLOAD = """
function (files) {
  let field = this.nodeType === 1 ? this : this.parentElement;
  if (field?.localName === 'label') field = field.control;
  if (field?.localName !== 'input' || field.type !== 'file') return {field: false};
  if (field.disabled) return {refused: 'is disabled'};
  if (files.length > 1 && !field.multiple) return {refused: 'takes one file'};
  const given = new DataTransfer();
  for (const {name, type, data} of files)
    given.items.add(new File([Uint8Array.from(atob(data), char => char.charCodeAt(0))], name, {type}));
  field.files = given.files;
  field.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
  field.dispatchEvent(new Event('change', {bubbles: true}));
  return {field: true};
}"""
"""Gives files to a field; `field` is false where the element is none."""

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

NEW_WORD = """
() => {
  let at = document.activeElement;
  for (let inner; (inner = at?.shadowRoot?.activeElement ?? at?.contentDocument?.activeElement); ) at = inner;
  if (at?.localName !== 'select') return;
  const view = at.ownerDocument.defaultView, unheard = ['blur', 'focusout', 'focus', 'focusin'];
  const hush = event => event.stopImmediatePropagation();
  for (const each of unheard) view.addEventListener(each, hush, true);
  at.blur();
  at.focus({preventScroll: true});
  for (const each of unheard) view.removeEventListener(each, hush, true);
}"""
"""Makes the next letter the first of a word for a list that has the focus.

A list takes letters that come within a second of the last ones for the same word: what an action chooses would hang on how soon it follows.
To have lost the focus ends a word; the page does not hear of it."""
