"use strict";
// The tree: d3-hierarchy, moved by d3-zoom, drawn as SVG. An item is a state, or an action that leads to none.

const CARD = { width: 264, height: 50, value: 46, row: 60, column: 314 };
const pen = document.createElement("canvas").getContext("2d");

/** All items by key: `17` is a state, `17.2` the third action of state 17, which leads to no state. */
function itemsOf(nodes) {
  const items = new Map();
  for (const node of nodes) items.set(String(node.id), { key: String(node.id), node, choice: choiceTo(node), via: node.via, children: [] });
  for (const node of nodes) {
    const item = items.get(String(node.id));
    if (node.parent != null) items.get(String(node.parent)).children.push(item);
    (node.choices ?? []).forEach((choice, via) => {
      if (choice.child != null) return;
      const action = { key: `${node.id}.${via}`, node: null, at: node, choice, via, children: [] };
      items.set(action.key, action);
      item.children.push(action);
    });
  }
  for (const item of items.values()) {
    item.children.sort((a, b) => importance(b) - importance(a) || a.via - b.via);
    item.children.forEach(child => { child.parent = item; });
  }
  return items;
}

/** Committed before others, then by visits; what leads nowhere comes last. */
const importance = item => (item.node?.committed ? 1e9 : item.node ? 1 : 0) + (item.choice?.visits ?? 0);

/** Each state stands as high as there is room in its column, no higher than the one before it: the committed path, which comes
 * first, is one straight line, and the others follow below. */
function layOut(root) {
  const free = [];
  (function place(state, least) {
    const gap = free[state.depth] && state === state.parent.children[0] ? 0.35 : 0;
    const row = Math.max(least, (free[state.depth] ?? 0) + gap);
    free[state.depth] = row + 1;
    [state.x, state.y] = [row * CARD.row, state.depth * CARD.column];
    for (const child of state.children ?? []) place(child, row);
  })(root, 0);
}

class TreeView {
  constructor(svg, items, onSelect) {
    this.svg = d3.select(svg);
    this.items = items;
    this.folded = new Set();
    this.untried = false;
    this.cursor = this.selected = items.get("0");
    this.onSelect = onSelect;
    this.stage = this.svg.append("g");
    this.links = this.stage.append("g").attr("class", "links");
    this.cards = this.stage.append("g");
    const focused = () => document.activeElement === svg;
    this.zoom = d3.zoom().scaleExtent([0.05, 2.5])
      .filter(event => (event.type === "wheel" ? event.ctrlKey || event.metaKey || focused() : !event.button))
      .on("zoom", event => this.stage.attr("transform", event.transform));
    this.svg.call(this.zoom).on("dblclick.zoom", null);
  }

  shown(item) {
    return this.folded.has(item.key) ? [] : item.children.filter(child => child.node || child.choice.status || this.untried);
  }

  draw() {
    const root = d3.hierarchy(this.items.get("0"), item => this.shown(item));
    layOut(root);
    this.placed = new Map(root.descendants().map(place => [place.data.key, place]));
    this.drawLinks(root.links());
    this.drawCards(root.descendants());
    this.mark();
  }

  drawLinks(links) {
    const middle = (CARD.column - CARD.width) / 2;
    this.links.selectAll("path").data(links, link => link.target.data.key).join("path")
      .attr("class", link => `${link.target.data.node?.committed ? "committed" : ""} ${faint(link.target.data) ? "faint" : ""}`)
      .attr("stroke-width", link => 1.25 + Math.min(3, Math.log2(1 + (link.target.data.choice?.visits ?? 0)) / 2))
      .attr("d", ({ source: s, target: t }) =>
        `M${s.y + CARD.width},${s.x} C${s.y + CARD.width + middle},${s.x} ${t.y - middle},${t.x} ${t.y},${t.x}`);
  }

  drawCards(places) {
    const cards = this.cards.selectAll("g.card").data(places, place => place.data.key).join(enter => this.addCards(enter));
    cards.attr("transform", place => `translate(${place.y},${place.x - CARD.height / 2})`)
      .attr("aria-expanded", place => (place.data.children.length ? String(!this.folded.has(place.data.key)) : null))
      .attr("aria-level", place => place.depth + 1);
    cards.select(".fold").attr("visibility", place => (this.shown(place.data).length || this.folded.has(place.data.key) ? null : "hidden"));
    cards.select(".fold text").text(place => (this.folded.has(place.data.key) ? `+${count(place.data)}` : "−"));
  }

  addCards(enter) {
    const card = enter.append("g").attr("role", "treeitem").attr("id", place => `item-${place.data.key}`)
      .attr("class", place => `card ${statusOf(place.data)} ${place.data.node?.committed ? "committed" : ""} ${faint(place.data) ? "faint" : ""}`)
      .attr("aria-label", place => spoken(place.data))
      .on("click", (event, place) => this.select(place.data));
    card.append("title").text(place => spoken(place.data));
    card.append("rect").attr("class", "halo").attr("x", -5).attr("y", -5).attr("width", CARD.width + 10).attr("height", CARD.height + 10).attr("rx", 13);
    card.append("rect").attr("class", "face").attr("width", CARD.width).attr("height", CARD.height).attr("rx", 9);
    card.append("path").attr("class", place => `value ${shade(meanOf(place.data))}`)
      .attr("d", `M9,0 H${CARD.value} V${CARD.height} H9 A9,9 0 0 1 0,${CARD.height - 9} V9 A9,9 0 0 1 9,0 Z`);
    card.append("text").attr("class", place => `figure ${shade(meanOf(place.data))}`).attr("x", CARD.value / 2).attr("y", CARD.height / 2 + 4.5)
      .text(place => figure(meanOf(place.data)).replace(/^0\./, "."));
    card.append("text").attr("class", "action").attr("x", CARD.value + 10).attr("y", 20)
      .text(place => fitted(titleOf(place.data), CARD.width - CARD.value - 20));
    card.append("text").attr("class", "stats").attr("x", CARD.value + 10).attr("y", 38).text(place => statistics(place.data));
    card.append("text").attr("class", "badge").attr("x", CARD.width - 10).attr("y", 38).text(place => badge(place.data));
    card.append("rect").attr("class", "border").attr("width", CARD.width).attr("height", CARD.height).attr("rx", 9);
    const fold = card.append("g").attr("class", "fold").attr("transform", `translate(${CARD.width},${CARD.height / 2})`)
      .on("click", (event, place) => { event.stopPropagation(); this.fold(place.data); });
    fold.append("rect").attr("x", -13).attr("y", -10).attr("width", 26).attr("height", 20).attr("rx", 10);
    fold.append("text").attr("y", 4);
    return card;
  }

  /** Show which item the keyboard is at, and which one the panel describes. */
  mark() {
    this.cards.selectAll("g.card").classed("cursor", place => place.data === this.cursor).classed("selected", place => place.data === this.selected)
      .attr("aria-selected", place => String(place.data === this.selected));
    this.svg.attr("aria-activedescendant", `item-${this.cursor.key}`);
  }

  /** The first view: all of it, or the committed path with what was considered on it where all would not be seen. */
  open(item) {
    this.cursor = this.selected = item;
    this.draw();
    const rows = d3min([...this.placed.values()], place => -place.x) / -CARD.row + 1;
    if (rows * CARD.row * this.readable() > this.svg.node().getBoundingClientRect().height) this.onlyCommitted();
    this.select(item);
    this.fit({ readable: true });
  }

  /** The smallest scale at which cards can be read. */
  readable() { return this.svg.node().getBoundingClientRect().width < 600 ? 0.66 : 0.82; }

  select(item, { reveal = false } = {}) {
    this.cursor = this.selected = item;
    for (let above = item.parent; above; above = above.parent) this.folded.delete(above.key);
    if (!item.node && !item.choice.status) this.untried = true;
    this.draw();
    if (reveal) this.reveal(item);
    this.onSelect(item);
  }

  fold(item) {
    if (!item.children.length) return;
    if (!this.folded.delete(item.key)) this.folded.add(item.key);
    if (!this.placed.has(this.cursor.key)) this.cursor = item;
    this.draw();
    if (!this.placed.has(this.cursor.key)) { this.cursor = item; this.mark(); }
  }

  expand() { this.folded.clear(); this.draw(); }

  /** Fold whatever no committed step went through. */
  onlyCommitted() {
    for (const item of this.items.values()) if (item.children.length && !(item.node?.committed && !item.node.current)) this.folded.add(item.key);
  }

  /** Move the cursor: along the branch, or among the states of one depth. */
  move(key) {
    const place = this.placed.get(this.cursor.key);
    const level = [...this.placed.values()].filter(other => other.depth === place.depth).sort((a, b) => a.x - b.x);
    if (key === "ArrowRight" && this.folded.has(this.cursor.key)) return this.fold(this.cursor);
    const next = {
      ArrowLeft: place.parent, ArrowRight: place.children?.[0], Home: this.placed.get("0"),
      ArrowUp: level[level.indexOf(place) - 1], ArrowDown: level[level.indexOf(place) + 1],
    }[key];
    if (!next) return undefined;
    this.cursor = next.data;
    this.mark();
    return this.reveal(this.cursor);
  }

  /** Bring an item into view, moving no more than is needed. */
  reveal(item) {
    const place = this.placed.get(item.key), box = this.svg.node().getBoundingClientRect(), now = d3.zoomTransform(this.svg.node());
    const [left, top] = now.apply([place.y, place.x - CARD.height / 2]), [right, bottom] = now.apply([place.y + CARD.width, place.x + CARD.height / 2]);
    const shift = (from, to, size) => (from < 16 ? 16 - from : to > size - 16 ? size - 16 - to : 0);
    const dx = shift(left, right, box.width), dy = shift(top, bottom, box.height);
    if (dx || dy) this.go(this.zoom.translateBy, dx / now.k, dy / now.k);
  }

  /** The whole tree; where it could not be read, its upper left part, moved to show the selected state. */
  fit({ readable = false } = {}) {
    const places = [...this.placed.values()], box = this.svg.node().getBoundingClientRect();
    const top = d3min(places, place => place.x) - CARD.height, bottom = -d3min(places, place => -place.x) + CARD.height;
    const right = -d3min(places, place => -place.y) + CARD.width + 24;
    const whole = Math.min(1, (box.width - 32) / right, (box.height - 16) / (bottom - top));
    const scale = readable ? Math.max(whole, this.readable()) : whole, kept = whole === scale;
    const y = Math.max(24, (kept ? box.height - (bottom - top) * scale : 0) / 2) - top * scale;
    this.svg.call(this.zoom.transform, d3.zoomIdentity.translate(kept ? (box.width - right * scale) / 2 : 16, y).scale(scale));
    if (!kept) this.reveal(this.selected);
  }

  go(change, ...values) {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    (calm ? this.svg : this.svg.transition().duration(160)).call(change, ...values);
  }
}

const d3min = (places, of) => places.reduce((least, place) => Math.min(least, of(place)), Infinity);
const statusOf = item => (item.node ? item.node.status : item.choice.status ?? "untried");
const faint = item => !["open", "terminal"].includes(statusOf(item)) && !item.node?.committed;
const meanOf = item => (item.node && item.node.status !== "unlike" ? item.choice?.value ?? item.node.mean : item.node?.mean ?? item.choice?.value);
const titleOf = item => item.choice?.words ?? "start";
const count = item => item.children.reduce((sum, child) => sum + 1 + count(child), 0);

function badge(item) {
  const status = statusOf(item);
  const words = [item.node?.pending && "in flight", item.node?.traces?.some(trace => trace.write) && "write", status === "untried" ? "not tried" : STATUS[status]];
  return words.filter(Boolean).join(" · ");
}

function statistics(item) {
  const visits = item.node && (!item.choice || item.node.status === "unlike") ? item.node.visits : item.choice.visits;
  return `N ${visits ?? 0}   Q ${figure(meanOf(item))}` + (item.choice ? `   P ${figure(item.choice.prior)}` : "");
}

function spoken(item) {
  const where = item.node ? `State ${item.node.id}` : "Action";
  return [where, titleOf(item), statistics(item).replace(/\s+/g, " "), badge(item), item.node?.committed && "committed"].filter(Boolean).join(", ");
}

/** Text cut to a width in pixels. */
function fitted(text, width) {
  pen.font = "500 12.5px system-ui, sans-serif";
  if (pen.measureText(text).width <= width) return text;
  let kept = Math.min(text.length, 60);
  while (kept > 1 && pen.measureText(`${text.slice(0, kept)}…`).width > width) kept -= 1;
  return `${text.slice(0, kept).trimEnd()}…`;
}
