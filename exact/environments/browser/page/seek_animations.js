// Runs in our own execution context of a document. Pauses endless animations and advances them by `step` milliseconds. Animations with an
// end are waited for instead.
function seekAnimations(step) {
  const positions = globalThis.exactAnimations ??= new Map();
  for (const each of document.getAnimations()) {
    if (Number.isFinite(each.effect?.getComputedTiming().endTime) || each.playState !== 'running' && !positions.has(each)) continue;
    positions.set(each, (positions.get(each) ?? 0) + step);
    each.pause();
    each.currentTime = positions.get(each);
  }
  for (const each of positions.keys()) if (each.playState === 'idle') positions.delete(each);
}
