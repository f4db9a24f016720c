// Chooses an option of a native drop-down by its label, or the option that `this` is if `label` is null. Returns {labels} if there is no
// such option.
function select(label) {
  let element = this.nodeType === 1 ? this : this.parentElement, option = null;
  if (!element || !element.isConnected) return {vanished: true};
  if (label === null) { option = element; element = element.closest('select'); }
  if (!element || element.localName !== 'select') return {refused: 'is not a native drop-down: click it and then the option'};
  const flat = text => text.trim().replace(/\s+/g, ' ');
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
}
