// Gives files {name, type, data: base64} to a file field, or to the one that a label belongs to. Returns {field: false} if the element is
// not a file field.
function upload(files) {
  let field = this.nodeType === 1 ? this : this.parentElement;
  if (field?.localName === 'label') field = field.control;
  if (field?.localName !== 'input' || field.type !== 'file') return {field: false};
  if (field.disabled) return {refused: 'is disabled'};
  if (files.length > 1 && !field.multiple) return {refused: 'takes one file'};
  const given = new DataTransfer();
  for (const {name, type, data} of files)
    given.items.add(new File([Uint8Array.from(atob(data), char => char.charCodeAt(0))], name, {type}));
  field.files = given.files;
  field.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
  field.dispatchEvent(new Event('change', {bubbles: true}));
  return {field: true};
}
