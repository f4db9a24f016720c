// Chooses an option of a native drop-down, or of the list that a field suggests, by its label; or the option that `this` is if `label` is
// null. `GROUP: LABEL` and `LABEL (2)` name one of several options of one label. Returns {labels} if there is no such option, and
// {several: names} if there are several.
function select(label) {
  let element = this.nodeType === 1 ? this : this.parentElement, option = null;
  if (!element || !element.isConnected) return {vanished: true};
  if (label === null) { option = element; element = element.closest('select, datalist'); }
  const flat = text => text.trim().replace(/\s+/g, ' ');
  if (element?.localName === 'datalist') element = element.getRootNode().querySelector(`input[list="${CSS.escape(element.id)}"]`);
  if (element?.localName === 'input' && element.list) {
    const options = [...element.list.options], folded = text => flat(text).toLowerCase();
    const named = each => each.label && each.label !== each.value ? `${each.value} (${each.label})` : each.value;
    option ??= options.find(each => [named(each), each.value, each.label].some(one => folded(one) === folded(label)));
    if (!option) return {labels: options.map(each => flat(named(each)))};
    if (element.matches(':disabled, [readonly]')) return {refused: 'is disabled or cannot be changed'};
    element.focus();
    if (element.value === option.value) return {done: true};
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(element, option.value);
    element.dispatchEvent(new InputEvent('input', {bubbles: true, composed: true, inputType: 'insertReplacementText', data: option.value}));
    element.dispatchEvent(new Event('change', {bubbles: true}));
    return {done: true};
  }
  if (!element || element.localName !== 'select') return {refused: 'is not a native drop-down: click it and then the option'};
  if (!option) {
    const options = [...element.options], own = each => flat(each.label), group = each => flat(each.closest('optgroup')?.label ?? '');
    const shown = many => { const few = many.filter(each => getComputedStyle(each).display !== 'none'); return few.length ? few : many; };
    const labelled = text => {
      const exact = options.filter(each => own(each) === text), folded = text.toLowerCase();
      return shown(exact.length ? exact : options.filter(each => own(each).toLowerCase() === folded));
    };
    const grouped = each => `${group(each)}: ${own(each)}`, numbered = each => `${own(each)} (${labelled(own(each)).indexOf(each) + 1})`;
    const meant = text => {
      const wanted = flat(text), folded = wanted.toLowerCase(), [, bare, number] = wanted.match(/^(.*) \((\d+)\)$/) ?? [];
      for (const way of [() => labelled(wanted), () => options.filter(each => each.value === text),
        () => shown(options.filter(each => group(each) && grouped(each).toLowerCase() === folded)),
        () => bare ? labelled(bare).slice(number - 1, number) : []]) {
        const found = way();
        if (found.length) return found;
      }
      return [];
    };
    const found = meant(label);
    const tells = names => names.every((name, i) => meant(name).length === 1 && meant(name)[0] === found[i]);
    if (!found.length) return {labels: options.map(own)};
    if (found.length > 1) return {several: [own, grouped, numbered, each => each.value].map(name => found.map(name)).find(tells) ?? []};
    option = found[0];
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
