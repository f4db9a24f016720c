// Helpers of the snapshot scripts. A path locates an element by the indices of children from the root element; -1 enters a shadow root.
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
