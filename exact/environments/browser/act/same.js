// Returns {changed: true} if an element may no longer be the one that was seen, and nothing if it is. `this` is its node. `mark`: that of the
// document when it was observed, see watch.js; absent if only `words`, the element's words from then, are compared. Both are absent if its
// words change all the time, and it was the one that was seen each time: they are not compared then. `value` and `checked`: the state of a
// field that scripts change without a trace.
function same({mark, words, value, checked}) {
  if (!this.isConnected) return null;
  //= said
  const now = said(this), field = this.matches?.('input:not([type=file], [type=password]), textarea');
  if (words === undefined && mark === undefined) {
    exactSaid.delete(this);
    return null;
  }
  exactSaid.set(this, now);
  if (words !== undefined) return words === now ? null : {changed: true};
  const [began, changes] = globalThis.exact?.mark() ?? [];
  const held = !field || (this.value === value && Boolean(this.checked) === checked);
  return mark?.[0] === began && mark?.[1] === changes && held ? null : {changed: true};
}
