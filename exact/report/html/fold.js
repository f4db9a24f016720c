"use strict";
// Long texts of the head show two lines. Where a text fits into them, there is nothing to unfold and no sign of it.

function fold() {
  for (const each of document.querySelectorAll(".folded:not([open])")) {
    const text = each.querySelector(".text");
    each.classList.toggle("whole", text.scrollHeight <= text.clientHeight + 1);
  }
}

addEventListener("resize", fold);
fold();
