// The script of a page that reads and fills the clipboard by its keyboard shortcuts, which need no permission.
let content = {};
document.oncopy = event => {
  event.preventDefault();
  for (const [kind, text] of Object.entries(content)) event.clipboardData.setData(kind, text);
};
document.onpaste = event => {
  event.preventDefault();
  const kinds = [...event.clipboardData.types].filter(kind => kind.startsWith('text/'));
  content = Object.fromEntries(kinds.map(kind => [kind, event.clipboardData.getData(kind)]));
};
