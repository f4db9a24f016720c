"use strict";
// Finds items by what they say: words of actions, reasons, titles, addresses, observations; or by their number.

/** Keys of the items that hold all the words; the words of an item that is open to the eye come before those of its page. */
function matches(items, asked) {
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const number = /^#?(\d+)$/.exec(asked.trim());
  if (number && items.has(number[1])) return [number[1]];
  return [...items.values()].filter(item => {
    const said = saidIn(item);
    return words.every(word => said.includes(word));
  }).map(item => item.key);
}

const said = new Map();
function saidIn(item) {
  if (said.has(item.key)) return said.get(item.key);
  const { node, choice } = item;
  const all = [choice?.words, choice?.reason, longText(choice?.rationale), STATUS[statusOf(item)], node?.title, node?.url, node?.reason,
    longText(node?.evaluation?.rationale), longText(node?.observation), isCommitted(node) && "committed", ...(node?.failures ?? [])];
  const text = all.filter(Boolean).join("\n").toLowerCase();
  said.set(item.key, text);
  return text;
}

class Find {
  constructor(field, view) {
    this.field = field;
    this.view = view;
    this.keys = [];
    this.place = -1;
    field.addEventListener("input", () => this.look());
    field.addEventListener("keydown", event => {
      if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") { field.value = ""; this.look(); view.host.focus(); }
      else return;
      event.preventDefault();
    });
    $("before").addEventListener("click", () => this.step(-1));
    $("next").addEventListener("click", () => this.step(1));
  }

  look() {
    this.keys = matches(this.view.items, this.field.value);
    this.place = -1;
    this.view.found = new Set(this.keys);
    this.view.draw();
    this.say();
  }

  step(by) {
    if (!this.keys.length) return;
    this.place = (this.place + by + this.keys.length) % this.keys.length;
    this.view.select(this.view.items.get(this.keys[this.place]), { reveal: true });
    this.say();
  }

  say() {
    const asked = this.field.value.trim();
    $("hits").textContent = !asked ? "" : !this.keys.length ? "nothing found" : this.place < 0 ? `${this.keys.length} found` : `${this.place + 1} of ${this.keys.length}`;
    for (const id of ["before", "next"]) $(id).disabled = !this.keys.length;
  }
}
