// The addresses that stand in a document: of links, forms, pictures, scripts and styles, each once, at most `most`.
most => {
  const found = new Set();
  const add = text => {
    if (found.size < most && /^https?:/.test(text)) found.add(text);
  };
  for (const each of document.querySelectorAll('[href], [src], [action], [formaction], [data], [poster]')) {
    for (const name of ['href', 'src', 'action', 'formAction', 'data', 'poster']) {
      if (typeof each[name] === 'string') add(each[name]);
    }
  }
  for (const each of document.querySelectorAll('[srcset]')) {
    for (const part of each.getAttribute('srcset').split(',')) {
      try {
        add(new URL(part.trim().split(/\s/)[0], document.baseURI).href);
      } catch {} // no address
    }
  }
  return [...found];
}
