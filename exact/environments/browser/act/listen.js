// Listens to the pointer, and stops events that the guard of `exactGuard` does not let through. watch.js includes it, so that no listener
// of the page comes before; a guard includes it again, because a document that is opened anew loses its listeners.
globalThis.exactPress ??= event => {
  if (!event.isTrusted || !globalThis.exactGuard?.lets || globalThis.exactGuard.lets(event)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
};
for (const kind of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'dblclick', 'contextmenu'])
  addEventListener(kind, globalThis.exactPress, true);
