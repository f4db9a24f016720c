// Runs first in every document, among the page's own scripts. Reports which answers to `fetch` have a body that the page has not begun to
// read: the browser never reports the end of those that may not be cached.
function fetches() {
  const fetched = window.fetch, answers = new Set();
  window.fetch = function fetch(...given) {
    return fetched.apply(this, given).then(answer => { answers.add(new WeakRef(answer)); return answer; });
  };
  document.addEventListener('exact-unread?', () => {
    const unread = [];
    for (const each of answers) {
      const answer = each.deref();
      if (!answer || answer.bodyUsed || answer.body?.locked) answers.delete(each);
      else unread.push(answer.url);
    }
    document.dispatchEvent(new CustomEvent('exact-unread', {detail: JSON.stringify(unread)}));
  });
}
