"""Functions that read what a document holds besides its scripts' state, and put it back. They run in our own environment of it."""

_PATHS = """
const path = element => {
  const steps = [];
  for (let node = element; node !== document.documentElement; ) {
    const parent = node.parentNode;
    if (!parent) return null;
    steps.unshift([...parent.children].indexOf(node));
    if (parent instanceof ShadowRoot) { steps.unshift(-1); node = parent.host; } else node = parent;
  }
  return steps;
};
const at = steps => {
  let node = document.documentElement;
  for (const step of steps) node = step < 0 ? node?.shadowRoot : node?.children[step];
  return node ?? null;
};
const walk = function* (root) {
  for (const each of root.querySelectorAll('*')) {
    yield each;
    if (each.shadowRoot) yield* walk(each.shadowRoot);
  }
};
const kind = element => element.localName === 'input' ? element.type : element.localName;
const focused = () => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return element && element !== document.body && element !== document.documentElement ? element : null;
};
"""
"""Where an element is: indices of children from the root element, -1 for its shadow root."""

TAKE = f"""
(() => {{
  {_PATHS}
  const untold = ['hidden', 'file', 'submit', 'button', 'reset', 'image'];
  const state = {{url: location.href, origin: location.origin, name: window.name, local: null, session: null,
    fields: [], edited: [], opened: [], scrolled: [], window: [scrollX, scrollY], focus: null, caret: null, over: null}};
  try {{
    state.local = Object.entries(localStorage);
    state.session = Object.entries(sessionStorage);
  }} catch (error) {{}}
  for (const each of walk(document)) {{
    const type = kind(each);
    if (each.localName === 'input' && !untold.includes(type))
      state.fields.push({{at: path(each), kind: type, value: each.value, on: each.checked, mixed: each.indeterminate}});
    else if (each.localName === 'textarea') state.fields.push({{at: path(each), kind: type, value: each.value}});
    else if (each.localName === 'select')
      state.fields.push({{at: path(each), kind: type, chosen: [...each.options].flatMap((option, i) => option.selected ? [i] : [])}});
    else if (each.localName === 'details') state.opened.push({{at: path(each), open: each.open}});
    if (each.isContentEditable && !each.parentElement?.isContentEditable) state.edited.push({{at: path(each), html: each.innerHTML}});
    if ((each.scrollTop || each.scrollLeft) && each !== document.scrollingElement)
      state.scrolled.push({{at: path(each), left: each.scrollLeft, top: each.scrollTop}});
  }}
  const holder = focused();
  if (holder) {{
    state.focus = path(holder);
    try {{ if (holder.selectionStart !== null) state.caret = [holder.selectionStart, holder.selectionEnd, holder.selectionDirection]; }}
    catch (error) {{}}
  }}
  const over = [...document.querySelectorAll(':hover')].pop();
  if (over && over.localName !== 'html' && over.localName !== 'body') state.over = path(over);
  return state;
}})()"""
"""What a document holds, as JSON. Hidden fields are left as the server sends them, for they hold its tokens."""

STORE = """
(states => {
  const state = states.find(each => each.origin === location.origin && each.local);
  if (!state) return;
  for (const [storage, entries] of [[localStorage, state.local], [sessionStorage, state.session]]) {
    const wanted = new Map(entries);
    for (const key of Object.keys(storage)) if (!wanted.has(key)) storage.removeItem(key);
    for (const [key, value] of wanted) if (storage.getItem(key) !== value) storage.setItem(key, value);
  }
})"""
"""Both storages of a document's origin as they were; called with the states of all documents."""

PUT = f"""
((state, told) => {{
  {_PATHS}
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const changed = [];
  const put = (entry, element, index) => {{
    let before, after;
    if (entry.chosen) {{
      before = [...element.options].flatMap((option, i) => option.selected ? [i] : []);
      after = entry.chosen;
      if (!same(before, after)) [...element.options].forEach((option, i) => {{ option.selected = after.includes(i); }});
      if (!after.length && element.selectedIndex >= 0) element.selectedIndex = -1;
    }} else {{
      before = [element.value, element.checked, element.indeterminate];
      after = [entry.value, entry.on, entry.mixed];
      const toggles = entry.kind === 'checkbox' || entry.kind === 'radio';
      if (!toggles && element.value !== entry.value) element.value = entry.value;
      if (toggles) {{ element.checked = entry.on; element.indeterminate = entry.mixed; }}
    }}
    if (!same(before, after) || told.includes(index)) changed.push(index);
    if (told.includes(index))
      for (const type of ['input', 'change']) element.dispatchEvent(new Event(type, {{bubbles: true, composed: true}}));
  }};
  state.fields.forEach((entry, index) => {{
    const element = at(entry.at);
    if (element && kind(element) === entry.kind) put(entry, element, index);
  }});
  for (const entry of state.edited) {{
    const element = at(entry.at);
    if (element?.isContentEditable && element.innerHTML !== entry.html) element.innerHTML = entry.html;
  }}
  for (const entry of state.opened) {{
    const element = at(entry.at);
    if (element?.localName === 'details' && element.open !== entry.open) element.open = entry.open;
  }}
  const holder = state.focus && at(state.focus);
  if (holder && focused() !== holder) holder.focus({{preventScroll: true}});
  if (!state.focus) focused()?.blur();
  try {{ if (holder && state.caret) holder.setSelectionRange(...state.caret); }} catch (error) {{}}
  for (const entry of state.scrolled) at(entry.at)?.scrollTo({{left: entry.left, top: entry.top, behavior: 'instant'}});
  window.scrollTo({{left: state.window[0], top: state.window[1], behavior: 'instant'}});
  if (window.name !== state.name) window.name = state.name;
  return changed;
}})"""
"""A document's fields, focus and scroll as they were; called with its state and the indices of fields whose change the page is told of.
Gives the indices of the fields that were not so."""

POINT = f"""
(state => {{
  {_PATHS}
  const element = state.over && at(state.over);
  const box = element?.getBoundingClientRect();
  return box && box.width && box.height ? [box.left + box.width / 2, box.top + box.height / 2] : null;
}})"""
"""The middle of what the pointer was over; null where that is not known."""
