// Listens to the pointer before the page does, and stops what the guard of `exactAim` does not let through.
globalThis.exactListener ??= event => {
  if (!event.isTrusted || !globalThis.exactAim?.guard || globalThis.exactAim.guard(event)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
};
for (const kind of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'dblclick', 'contextmenu'])
  addEventListener(kind, globalThis.exactListener, true);
