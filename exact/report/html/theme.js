"use strict";
// Light, dark, or as the system says; remembered where the browser lets a page remember.

const THEMES = ["auto", "light", "dark"];

function themed(changed = () => {}) {
  const button = document.getElementById("theme");
  const show = name => {
    if (name === "auto") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.dataset.theme = name;
    button.textContent = { auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark" }[name];
    button.setAttribute("aria-label", `Colours: ${name}`);
    changed();
  };
  let now = remembered();
  button.addEventListener("click", () => {
    now = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
    try { localStorage.setItem("exact-theme", now); } catch { /* the browser remembers nothing for a file */ }
    show(now);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => changed());
  show(now);
}

function remembered() {
  try {
    const name = localStorage.getItem("exact-theme");
    return THEMES.includes(name) ? name : "auto";
  } catch {
    return "auto";
  }
}
