// Makes a field ready to be typed in: scrolls it into view, focuses it and selects its content. Sets the value directly if typing cannot
// (dates, colours, ranges), and then returns {done: true}. The page first handles the focus for up to a second, else it would depend on
// timing whether a date picker that opens after a delay receives the typed text.
async function focus(text) {
  const element = this.nodeType === 1 ? this : this.parentElement;
  if (!element || !element.isConnected) return {vanished: true};
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
  //= said
  if (!element.isConnected) return {vanished: true};
  if (reworded(this)) return {changed: true};
  if (element.select) element.select(); else getSelection().selectAllChildren(element);
  return {done: false};
}
