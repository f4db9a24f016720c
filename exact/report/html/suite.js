"use strict";
// The page of a run or of several: a table that can be sorted and filtered, two plots, and two attempts side by side.

const SUITE = JSON.parse(document.getElementById("data").textContent);
const by = id => document.getElementById(id);
const figureOf = value => (value == null ? "–" : value.toFixed(2));

function element(tag, attributes = {}, ...children) {
  const drawnHere = ["svg", "line", "text", "path", "circle", "title"].includes(tag);
  const found = drawnHere ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value != null && value !== false) found.setAttribute(name, value);
  found.append(...children.flat().filter(child => child != null && child !== ""));
  return found;
}

// --- the table

const body = by("attempts").tBodies[0], lines = [...body.rows];
const rowOf = line => SUITE.rows[Number(line.dataset.row)];

for (const head of by("attempts").tHead.rows[0].cells) {
  if (!head.dataset.key) continue;
  const button = element("button", { type: "button", class: "sort" }, head.textContent);
  head.replaceChildren(button);
  button.addEventListener("click", () => sort(head));
}

/** By one column; once more turns it round. What is not known comes last either way. */
function sort(head) {
  const down = head.getAttribute("aria-sort") === "ascending", { key } = head.dataset;
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const order = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  lines.sort((one, two) => {
    const [a, b] = [rowOf(one)[key], rowOf(two)[key]];
    if (a == null || b == null) return (a == null) - (b == null) || one.dataset.row - two.dataset.row;
    return (down ? -order(a, b) : order(a, b)) || one.dataset.row - two.dataset.row;
  });
  body.append(...lines);
}

for (const words of new Set(SUITE.rows.map(row => row.headline))) by("came").append(element("option", { value: words }, words));

function filter() {
  const words = by("filter").value.toLowerCase().split(/\s+/).filter(Boolean), came = by("came").value;
  let shown = 0;
  for (const line of lines) {
    const row = rowOf(line), said = `${row.run} ${row.agent} ${row.task} seed=${row.seed} ${row.headline} ${row.instruction} ${row.last ?? ""} ${row.reason ?? ""} ${row.stopped ?? ""} ${row.answer ?? ""}`.toLowerCase();
    line.hidden = !words.every(word => said.includes(word)) || (came !== "" && row.headline !== came);
    shown += !line.hidden;
  }
  by("counted").textContent = shown === lines.length ? "" : `${shown} of ${lines.length}`;
}
by("filter").addEventListener("input", filter);
by("came").addEventListener("change", filter);

// --- the plots

const AREA = { width: 560, height: 250, left: 44, right: 14, top: 12, bottom: 34 };
const across = share => AREA.left + share * (AREA.width - AREA.left - AREA.right);
const up = share => AREA.height - AREA.bottom - share * (AREA.height - AREA.top - AREA.bottom);

function axes(label, xs) {
  const svg = element("svg", { viewBox: `0 0 ${AREA.width} ${AREA.height}`, role: "img", "aria-label": label });
  for (const share of [0, 0.5, 1]) {
    svg.append(element("line", { x1: AREA.left, x2: AREA.width - AREA.right, y1: up(share), y2: up(share), class: "grid" }),
      element("text", { x: AREA.left - 7, y: up(share) + 4, class: "tick end" }, share.toFixed(1)));
  }
  xs.forEach(([share, text], place) => svg.append(element("text", { x: across(share), y: AREA.height - 12, class: `tick ${place === xs.length - 1 ? "end" : ""}` }, text)));
  return svg;
}

const keyed = names => element("ul", { class: "key" }, names.map((name, place) => element("li", { class: `s${place % 6} ${place > 5 ? "dashed" : ""}` }, name)));

/** Which share of a run's attempts was solved at no more than so much: one step for each that was. */
function costs() {
  const priced = SUITE.rows.some(row => row.cost > 0), measure = priced ? "cost" : SUITE.rows.some(row => row.tokens > 0) ? "tokens" : "transitions";
  const most = Math.max(0, ...SUITE.rows.map(row => row[measure] ?? 0)) || 1;
  const said = amount => (measure === "cost" ? `$${amount.toFixed(amount < 1 ? 4 : 2)}` : `${Math.round(amount).toLocaleString("en")} ${measure}`);
  const title = `Share solved within a given ${measure === "cost" ? "cost" : `number of ${measure}`} per attempt; dots: mean of a run`;
  const summary = [];
  const svg = axes(title, [[0, said(0)], [0.5, said(most / 2)], [1, said(most)]]);
  SUITE.runs.forEach((run, place) => {
    const rows = SUITE.rows.filter(row => row.run === run), known = rows.filter(row => row[measure] != null);
    const solved = known.filter(row => row.ending === "solved").map(row => row[measure]).sort((a, b) => a - b);
    let d = `M${across(0)},${up(0)}`;
    solved.forEach((amount, i) => { d += `H${across(amount / most).toFixed(1)}V${up((i + 1) / rows.length).toFixed(1)}`; });
    const mean = known.reduce((sum, row) => sum + row[measure], 0) / (known.length || 1), share = solved.length / rows.length;
    svg.append(element("path", { d: `${d}H${across(1)}`, class: `line s${place % 6} ${place > 5 ? "dashed" : ""}` }),
      element("circle", { cx: across(mean / most), cy: up(share), r: 5, class: `spot s${place % 6}` }, element("title", {}, `${run}: ${share.toFixed(2)} solved for ${said(mean)} each`)));
    summary.push(`${run}: ${Math.round(100 * share)} % for ${said(mean)} each`);
  });
  by("costs").replaceChildren(element("figcaption", {}, title), svg, keyed(summary));
}

/** What attempts held of themselves, against what came. */
function trust() {
  const title = "Own evaluation against score: calibrated on the line, too optimistic below it";
  const svg = axes(title, [[0, "0"], [0.5, "own evaluation 0.5"], [1, "1"]]);
  svg.append(element("line", { x1: across(0), y1: up(0), x2: across(1), y2: up(1), class: "commit" }));
  const names = [];
  SUITE.runs.forEach((run, place) => {
    const bins = SUITE.reliability[run] ?? [];
    const d = bins.map((bin, i) => `${i ? "L" : "M"}${across(bin.said).toFixed(1)},${up(bin.came).toFixed(1)}`).join("");
    if (d) svg.append(element("path", { d, class: `line s${place % 6}` }));
    for (const bin of bins) {
      svg.append(element("circle", { cx: across(bin.said), cy: up(bin.came), r: 3 + Math.min(6, Math.sqrt(bin.count)), class: `spot s${place % 6}` },
        element("title", {}, `${run}: ${bin.count} attempts with evaluation ${bin.said.toFixed(2)} and mean score ${bin.came.toFixed(2)}`)));
    }
    names.push(bins.length ? `${run}: ${bins.reduce((sum, bin) => sum + bin.count, 0)} attempt(s)` : `${run}: none with an evaluation and a score`);
  });
  by("trust").replaceChildren(element("figcaption", {}, title), svg, keyed(names));
}

// --- two attempts side by side

const picks = [];
for (const box of document.querySelectorAll(".pick")) {
  box.addEventListener("change", () => {
    const index = Number(box.closest("tr").dataset.row);
    if (box.checked) picks.push(index);
    else picks.splice(picks.indexOf(index), 1);
    if (picks.length > 2) document.querySelector(`tr[data-row="${picks.shift()}"] .pick`).checked = false;
    compare(false);
  });
}

function compare(quietly) {
  const host = by("compared");
  host.hidden = picks.length < 2;
  if (host.hidden) return;
  const [one, other] = [...picks].sort((a, b) => a - b), rows = [SUITE.rows[one], SUITE.rows[other]];
  const found = SUITE.differences.find(each => each.one === one && each.other === other);
  host.replaceChildren(element("h2", {}, `${rows[0].run} and ${rows[1].run}`), ...first(found, rows), sides(rows, found));
  if (!quietly) host.scrollIntoView({ block: "nearest" });
}

function first(found, rows) {
  if (!found) return [element("p", {}, "These are attempts at different tasks or seeds: their searches are not compared.")];
  if (!found.words[0] && !found.words[1]) return [element("p", {}, `Their searches are the same in all ${found.alike} moves.`)];
  const side = place => element("li", {}, element("b", {}, `${rows[place].run} `), element("span", { dir: "auto" }, found.words[place]), " ", link(rows[place], found.nodes[place]));
  return [element("p", {}, `The first ${found.alike} moves are the same. At iteration ${found.iteration} they differ:`), element("ul", { class: "parting" }, side(0), side(1))];
}

const link = (row, node) => (row.href && node >= 0 ? element("a", { href: `${encodeURI(row.href)}#node=${node}` }, `state ${node}`) : "");

function sides(rows, found) {
  const length = Math.max(...rows.map(row => (row.path ?? []).length), 0);
  const steps = Array.from({ length }, (_, i) => element("tr", { class: found?.step === i ? "parts" : null },
    element("td", { class: "n" }, String(i + 1)), rows.map(row => element("td", {}, element("code", { dir: "auto" }, row.path?.[i] ?? "–")))));
  const heads = rows.map(row => element("th", { scope: "col" }, `${row.run}: ${row.headline}, score ${figureOf(row.score)}, own evaluation ${figureOf(row.value)}`));
  return element("div", { class: "wide", tabindex: "0" }, element("table", { class: "sides" }, element("thead", {}, element("tr", {}, element("th", { scope: "col", class: "n" }, "Step"), heads)), element("tbody", {}, steps)));
}

for (const button of document.querySelectorAll("[data-pair]")) {
  button.addEventListener("click", () => {
    picks.splice(0, 2, ...button.dataset.pair.split(",").map(Number));
    for (const box of document.querySelectorAll(".pick")) box.checked = picks.includes(Number(box.closest("tr").dataset.row));
    compare(false);
  });
}

if (by("plots")) {
  costs();
  trust();
}
themed();
const linkedPair = /^#compare=(\d+),(\d+)$/.exec(location.hash);
if (linkedPair) for (const index of linkedPair.slice(1)) document.querySelector(`tr[data-row="${index}"] .pick`)?.click();
