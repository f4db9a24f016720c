// Reports on a guard, and ends it unless it is to be kept. Returns {over, slipped}: what was hit instead of the element, empty if nothing
// was, and whether the element moved away between the press and the release.
function disarm(keep) {
  const {over, slipped} = globalThis.exactGuard ?? {};
  if (!keep) globalThis.exactGuard = undefined;
  return {over: over ?? '', slipped: Boolean(slipped)};
}
