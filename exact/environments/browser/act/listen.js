// Listens to the pointer before the page does, and stops what the guard of `exactGuard` does not let through.
globalThis.exactPress ??= event => {
  if (!event.isTrusted || !globalThis.exactGuard?.lets || globalThis.exactGuard.lets(event)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
};
for (const kind of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'dblclick', 'contextmenu'])
  addEventListener(kind, globalThis.exactPress, true);
