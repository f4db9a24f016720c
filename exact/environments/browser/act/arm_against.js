// Guards a frame in which no press is meant: stops every press until disarm.js, which names where it was.
function armAgainst() {
  const state = globalThis.exactAim = {over: '', slipped: false};
  state.guard = () => { state.over = 'a frame'; return false; };
  //= listen
  return {};
}
