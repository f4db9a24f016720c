// Clear the name of a window that another site's document left behind, as HTML asks of browsers: it would carry what that one knew.
() => {
  if (window === window.top && !window.opener && window.navigation?.activation?.from === null) window.name = '';
}
