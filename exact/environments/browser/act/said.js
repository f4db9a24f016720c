// The raw words of the control of a node, and of the row that it is in, or else of what stands before it, without its numbers. They never
// decide what an element is: if they differ, it is observed again, and then compared.
const said = node => {
  const own = node.nodeType === 1 ? node : node.parentElement;
  const control = own?.closest('a[href], button, select, label, summary, [role]') ?? own, above = control?.parentElement;
  const wide = !above || above.matches('body, main');
  const row = control?.closest('tr, li, dialog, article, [role=row], [role=listitem], [role=dialog]') ?? (wide ? null : above);
  const told = ['role', 'type', 'aria-label', 'title', 'alt'].map(name => control?.getAttribute(name));
  const labels = [...own?.labels ?? []].map(each => each.textContent);
  const near = row?.textContent ?? (control?.previousElementSibling?.textContent ?? '').replace(/\d+/g, '') + control?.textContent;
  return JSON.stringify([control?.localName, own?.type === 'button' ? own.value : '', ...told, ...labels, near.slice(0, 5000)]);
};
globalThis.exactSaid ??= new WeakMap();
// Whether the words of a node have changed since they were noted. What the pointer changed when it came, see aim.js, does not count.
const reworded = node => {
  if (globalThis.exactPointed === node && exactSaid.has(node)) exactSaid.set(node, said(node));
  globalThis.exactPointed = null;
  return exactSaid.has(node) && exactSaid.get(node) !== said(node);
};
// Has what the handlers of the present event change in a node count as the pointer's doing. They have run by the next task and the next
// frame; timers, answers and the page's own frames have not.
const allow = node => {
  if (!node.isConnected || reworded(node)) return;
  globalThis.exactPointed = node;
  const note = () => { if (globalThis.exactPointed === node) reworded(node); };
  requestAnimationFrame(note);
  scheduler.postTask(note, {priority: 'user-blocking'});
};
