// Returns whether the page shows a field for a password.
function asks_for_password() {
  return [...document.querySelectorAll('input[type=password]')].some(field => field.checkVisibility({checkVisibilityCSS: true}));
}
