// Returns the requests that handlers of timers sent since the last call, as addresses with the time at which the timer was set.
function sent_by_timers() {
  let found = '[]';
  document.addEventListener('exact-sent', event => { found = String(event.detail); }, {once: true});
  document.dispatchEvent(new CustomEvent('exact-sent?'));
  return JSON.parse(found);
}
