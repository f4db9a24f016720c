// Inserts a text into the focused element of the script's document. No other document gets it, whatever takes the focus meanwhile.
function insert(text) {
  if (this instanceof Element) this.focus({preventScroll: true});
  return document.execCommand('insertText', false, text) ? {done: true} : {refused: 'takes no text: it lost the focus'};
}
