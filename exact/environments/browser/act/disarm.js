// Reports on a guard, and ends it unless it is to be kept. Returns {over, slipped, changed}: the element hit instead, empty if nothing was,
// whether the element moved away between the press and the release, and whether its words changed before either. `releases`: the releases
// of the button that are waited for before; the guard then stays until the next press begins.
function disarm(keep, releases = 0) {
  const guard = globalThis.exactGuard ?? {over: '', slipped: false, released: Infinity};
  const report = () => ({over: guard.over, slipped: guard.slipped, changed: Boolean(guard.changed)});
  if (releases) guard.due = releases;  // also if all have come already, else the guard would stop the next press
  if (guard.released < releases)
    return new Promise(next => { guard.onRelease = () => guard.released >= releases && next(report()); });
  if (!keep) {
    globalThis.exactGuard = undefined;
    guard.released = Infinity;
    guard.onRelease?.();
  }
  return report();
}
