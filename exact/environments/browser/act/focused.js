// Returns whether the script's document, or one in a frame of it, has the focus, and the document's origin.
function focused() {
  return {focused: document.hasFocus(), origin: self.origin};
}
