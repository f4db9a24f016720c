// Returns the text of a server's answer to a request for an address, as the logged-in user of the page.
async function fetch_text(url) {
  const answer = await fetch(url, {credentials: 'include'});
  return answer.ok ? await answer.text() : '';
}
