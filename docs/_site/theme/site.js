// Name the bar of each code block, which the theme adds without a name: assistive programs list them.
new MutationObserver(() => {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((bar) => {
    const all = [...document.querySelectorAll(".md-code__nav")];
    bar.setAttribute("aria-label", `Code block ${all.indexOf(bar) + 1}`);
  });
}).observe(document.body, { childList: true, subtree: true });
