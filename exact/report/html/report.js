"use strict";
// The data, and how it becomes elements. Text from it is only ever set as text.

const DATA = JSON.parse(document.getElementById("data").textContent);
const NODES = new Map(DATA.nodes.map(node => [node.id, node]));

const STATUS = {
  terminal: "end", held: "write held", "no-op": "no-op", drifted: "drifted", refused: "refused",
  failed: "failed", exhausted: "exhausted", unlike: "not reached",
};

const figure = value => (value == null ? "–" : value.toFixed(2));
const longText = number => (number == null ? "" : DATA.texts[number]);
const shade = value => (value == null ? "none" : `v${Math.round(10 * Math.min(1, Math.max(0, value)))}`);
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** An element; an attribute that is a function is a listener, null and false leave one out, strings among children are text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value != null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter(child => child != null && child !== ""));
  return element;
}

const table = (heads, rows) => make("div", { class: "wide" }, make("table", {},
  make("thead", {}, make("tr", {}, heads.map(head => make("th", { class: head.length < 3 ? "n" : null }, head)))),
  make("tbody", {}, rows)));

const section = (title, open, ...content) => make("details", { open }, make("summary", {}, title), ...content);

const prose = text => make("p", { class: "prose", dir: "auto" }, text);
const block = text => make("pre", { dir: "auto", tabindex: "0" }, text);
const tag = (text, kind = "") => make("span", { class: `tag ${kind}` }, text);
const toNode = id => make("a", { href: `#node=${id}` }, `state ${id}`);

/** The choice that led to a node, or null for the first. */
function choiceTo(node) {
  const parent = NODES.get(node.parent);
  return parent?.choices?.[node.via] ?? null;
}
