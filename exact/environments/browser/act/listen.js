// Listens to the pointer, and stops what the guard of `exactGuard` does not let through. watch.js includes it, so that no listener of the page
// comes before; a guard includes it again, for a document that is opened anew loses its listeners.
globalThis.exactPress ??= event => {
  if (!event.isTrusted || !globalThis.exactGuard?.lets || globalThis.exactGuard.lets(event)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
};
for (const kind of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'dblclick', 'contextmenu'])
  addEventListener(kind, globalThis.exactPress, true);
