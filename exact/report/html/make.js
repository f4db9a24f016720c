"use strict";
// How data become elements. Text is only ever set as text.

const $ = id => document.getElementById(id);
const part = id => JSON.parse($(id).textContent);
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** An element; an attribute that is a function is a listener, null and false leave one out, strings among children are text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value != null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter(child => child != null && child !== "" && child !== false));
  return element;
}
