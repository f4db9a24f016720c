// Returns the text that a server answers a request for an address with, as the logged-in user of the page.
async function fetch_text(url) {
  const answer = await fetch(url, {credentials: 'include'});
  return answer.ok ? await answer.text() : '';
}
