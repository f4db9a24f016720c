// Restores fields, focus and scroll positions of a document. `state`: the result of take.js. `notified`: indices of the fields for which
// the page gets `input` and `change` events. Returns the indices of the fields that differed.
function restoreFields(state, notified) {
  //= paths
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const changed = [];
  const put = (entry, element, index) => {
    let before, after;
    if (entry.chosen) {
      before = [...element.options].flatMap((option, i) => option.selected ? [i] : []);
      after = entry.chosen;
      if (!same(before, after)) [...element.options].forEach((option, i) => { option.selected = after.includes(i); });
      if (!after.length && element.selectedIndex >= 0) element.selectedIndex = -1;
    } else {
      before = [element.value, element.checked, element.indeterminate];
      after = [entry.value, entry.on, entry.mixed];
      const toggles = entry.kind === 'checkbox' || entry.kind === 'radio';
      if (!toggles && element.value !== entry.value) element.value = entry.value;
      if (toggles) { element.checked = entry.on; element.indeterminate = entry.mixed; }
    }
    if (!same(before, after) || notified.includes(index)) changed.push(index);
    if (notified.includes(index))
      for (const type of ['input', 'change']) element.dispatchEvent(new Event(type, {bubbles: true, composed: true}));
  };
  state.fields.forEach((entry, index) => {
    const element = at(entry.at);
    if (element && kind(element) === entry.kind) put(entry, element, index);
  });
  for (const entry of state.edited) {
    const element = at(entry.at);
    if (element?.isContentEditable && element.innerHTML !== entry.html) element.innerHTML = entry.html;
  }
  for (const entry of state.opened) {
    const element = at(entry.at);
    if (element?.localName === 'details' && element.open !== entry.open) element.open = entry.open;
  }
  const holder = state.focus && at(state.focus);
  if (holder && focused() !== holder) holder.focus({preventScroll: true});
  if (!state.focus) focused()?.blur();
  try { if (holder && state.caret) holder.setSelectionRange(...state.caret); } catch (error) {}
  for (const entry of state.scrolled) at(entry.at)?.scrollTo({left: entry.left, top: entry.top, behavior: 'instant'});
  window.scrollTo({left: state.window[0], top: state.window[1], behavior: 'instant'});
  if (window.name !== state.name) window.name = state.name;
  return changed;
}
