"use strict";
// The data, and how it becomes elements. Text from it is only ever set as text.

const DATA = part("data");
const NODES = new Map(DATA.nodes.map(node => [node.id, node]));

const kept = {};
/** What is read only when it is first looked at: `texts`, `pictures`, `marks`. */
const later = name => (kept[name] ??= part(name));
const pictureOf = node => (node?.picture ? later("pictures")[node.picture] : undefined);

/** The iteration that is shown; null: the end. */
const CLOCK = { at: null };

const STATUS = {
  terminal: "end", blocked: "write blocked", "no-op": "no-op", drifted: "drifted", refused: "refused",
  failed: "failed", exhausted: "exhausted", pruned: "pruned", unlike: "not reached", unreached: "not tried",
  outcome: "other outcome",
};

const figure = value => (value == null ? "–" : value.toFixed(2));
const longText = number => (number == null ? "" : later("texts")[number] ?? "");
const shade = value => (value == null ? "none" : `v${Math.round(10 * Math.min(1, Math.max(0, value)))}`);

const table = (heads, rows) => make("div", { class: "wide", tabindex: "0" }, make("table", {},
  make("thead", {}, make("tr", {}, heads.map(head => make("th", { scope: "col", class: head.length < 3 ? "n" : null }, head)))),
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

/** N and Q of a choice at an iteration, by default the one that is shown; null: the end. */
function standing(choice, at = CLOCK.at) {
  if (at == null) return { visits: choice?.visits ?? 0, value: choice?.value ?? null };
  const grew = choice?.grew ?? [];
  let low = 0, high = grew.length / 3;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (grew[3 * middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low ? { visits: grew[3 * low - 2], value: grew[3 * low - 1] / 10_000 } : { visits: 0, value: null };
}

const isThere = node => CLOCK.at == null || node.id === 0 || node.iteration < CLOCK.at;
const isCommitted = node => Boolean(node?.committed) && (CLOCK.at == null || (node.stood ?? 0) <= CLOCK.at);
const isCurrent = node => (CLOCK.at == null ? Boolean(node.current) : momentAt(CLOCK.at)?.root === node.id);

/** The last moment of the timeline that is not later than an iteration. */
function momentAt(iteration) {
  const moments = DATA.timeline;
  let found = null;
  for (const moment of moments) {
    if (moment.iteration > iteration) break;
    found = moment;
  }
  return found;
}
