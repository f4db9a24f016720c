// Guards a frame in which no press is meant: stops every press until disarm.js, which names the element that it hit.
function armAgainst() {
  const state = globalThis.exactGuard = {over: '', slipped: false, released: 0};
  state.lets = () => { state.over = 'a frame'; return false; };
  //= listen
  return {};
}
