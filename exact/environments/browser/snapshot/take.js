// Returns the state of a document without its scripts', as JSON: storage, fields, scroll positions, focus, caret and the element under the
// pointer. Hidden fields are left out: they hold the server's tokens.
function take() {
  //= paths
  const omitted = ['hidden', 'file', 'submit', 'button', 'reset', 'image'];
  const state = {url: location.href, origin: location.origin, name: window.name, local: null, session: null,
    fields: [], edited: [], opened: [], scrolled: [], window: [scrollX, scrollY], focus: null, caret: null, over: null};
  try {
    state.local = Object.entries(localStorage);
    state.session = Object.entries(sessionStorage);
  } catch (error) {}
  for (const each of walk(document)) {
    const type = kind(each);
    if (each.localName === 'input' && !omitted.includes(type))
      state.fields.push({at: path(each), kind: type, value: each.value, on: each.checked, mixed: each.indeterminate});
    else if (each.localName === 'textarea') state.fields.push({at: path(each), kind: type, value: each.value});
    else if (each.localName === 'select')
      state.fields.push({at: path(each), kind: type, chosen: [...each.options].flatMap((option, i) => option.selected ? [i] : [])});
    else if (each.localName === 'details') state.opened.push({at: path(each), open: each.open});
    if (each.isContentEditable && !each.parentElement?.isContentEditable) state.edited.push({at: path(each), html: each.innerHTML});
    if ((each.scrollTop || each.scrollLeft) && each !== document.scrollingElement)
      state.scrolled.push({at: path(each), left: each.scrollLeft, top: each.scrollTop});
  }
  const holder = focused();
  if (holder) {
    state.focus = path(holder);
    try { if (holder.selectionStart !== null) state.caret = [holder.selectionStart, holder.selectionEnd, holder.selectionDirection]; }
    catch (error) {}
  }
  const over = [...document.querySelectorAll(':hover')].pop();
  if (over && over.localName !== 'html' && over.localName !== 'body') state.over = path(over);
  return state;
}
