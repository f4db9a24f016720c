"use strict";
// The tree: which items are shown, which one is selected, and where the reader looks. A painter draws it.

class TreeView {
  /** So many paths at most are all shown at first; of more the committed one, with what was considered on it. */
  static wide = 12;
  /** So many cards at most are drawn as elements, of which each has about ten; more on a canvas. */
  static most = 400;

  constructor(host, items, onSelect) {
    this.host = host;
    this.items = items;
    this.folded = new Set();
    this.found = new Set();
    this.untried = false;
    this.cursor = this.selected = items.get("0");
    this.onSelect = onSelect;
    this.onMove = () => {};
    this.transform = d3.zoomIdentity;
    this.painter = null;
    const focused = () => document.activeElement === host;
    this.zoom = d3.zoom().scaleExtent([0.02, 8])
      .filter(event => (event.type === "wheel" ? event.ctrlKey || event.metaKey || focused() : !event.button))
      .on("zoom", event => { this.transform = event.transform; this.fitted = false; this.painter?.moved(this.transform); this.onMove(); });
    this.area = d3.select(host).call(this.zoom).on("dblclick.zoom", null);
    new ResizeObserver(() => { if (this.fitted) this.fit(); this.painter?.moved(this.transform); this.onMove(); }).observe(host);
  }

  shown(item) {
    if (this.folded.has(item.key)) return [];
    return item.children.filter(child => (child.node ? isThere(child.node) : CLOCK.at == null && (child.choice.status || this.untried)));
  }

  /** Draw all anew. The keyboard's place goes up to one that is shown. */
  draw() {
    const root = d3.hierarchy(this.items.get("0"), item => this.shown(item));
    layOut(root);
    this.placed = new Map(root.descendants().map(place => [place.data.key, place]));
    while (!this.placed.has(this.cursor.key)) this.cursor = this.cursor.parent;
    this.choosePainter();
    this.painter.draw();
    this.mark();
    this.onMove();
  }

  choosePainter() {
    const kind = this.placed.size > TreeView.most ? CanvasPainter : SvgPainter;
    if (this.painter instanceof kind) return;
    this.painter?.remove();
    this.painter = new kind(this.host, this);
  }

  mark() {
    this.painter.mark();
    this.host.setAttribute("aria-activedescendant", this.painter instanceof SvgPainter ? `item-${this.cursor.key}` : "item-cursor");
  }

  /** Where the reader looks, in the tree's own units. */
  window() {
    const { x, y, k } = this.transform, { width, height } = this.size();
    return { left: -x / k, top: -y / k, right: (width - x) / k, bottom: (height - y) / k };
  }

  size() { return { width: this.host.clientWidth, height: this.host.clientHeight }; }

  /** The first view, as a whole. */
  open(item) {
    this.cursor = this.selected = item;
    const leaves = d3.hierarchy(this.items.get("0"), each => this.shown(each)).count().value;
    if (leaves > TreeView.wide) this.onlyCommitted();
    this.select(item);
    this.fit();
  }

  select(item, { reveal = false } = {}) {
    this.cursor = this.selected = item;
    let hidden = !this.placed?.has(item.key);
    for (let above = item.parent; above; above = above.parent) hidden = this.folded.delete(above.key) || hidden;
    if (!item.node && !item.choice.status && !this.untried) [this.untried, hidden] = [true, true];
    if (hidden) this.draw();
    else this.mark();
    if (reveal) this.reveal(item);
    this.onSelect(item);
  }

  fold(item) {
    if (!item.children.length) return;
    if (!this.folded.delete(item.key)) this.folded.add(item.key);
    this.draw();
  }

  expand() { this.folded.clear(); this.draw(); }

  /** Fold whatever no committed step went through. */
  onlyCommitted() {
    for (const item of this.items.values()) if (item.children.length && !item.node?.committed) this.folded.add(item.key);
  }

  /** Move the cursor: along the branch, or among the states of one depth. */
  move(key) {
    const place = this.placed.get(this.cursor.key) ?? this.placed.get("0");
    const level = [...this.placed.values()].filter(other => other.depth === place.depth).sort((a, b) => a.y - b.y);
    if (key === "ArrowDown" && this.folded.has(this.cursor.key)) return this.fold(this.cursor);
    const next = {
      ArrowUp: place.parent, ArrowDown: place.children?.[0], Home: this.placed.get("0"), End: this.placed.get(lastCommitted()),
      ArrowLeft: level[level.indexOf(place) - 1], ArrowRight: level[level.indexOf(place) + 1],
    }[key];
    if (!next) return undefined;
    this.cursor = next.data;
    this.mark();
    return this.reveal(this.cursor);
  }

  /** Bring an item into view, moving no more than is needed. */
  reveal(item) {
    const place = this.placed.get(item.key);
    if (!place) return;
    const now = this.transform, { width, height } = this.size();
    const [left, top] = now.apply([place.y, place.x - CARD.height / 2]), [right, bottom] = now.apply([place.y + CARD.width, place.x + CARD.height / 2]);
    const shift = (from, to, size) => (from < 16 ? 16 - from : to > size - 16 ? size - 16 - to : 0);
    const dx = shift(left, right, width), dy = shift(top, bottom, height);
    if (dx || dy) this.go(this.zoom.translateBy, dx / now.k, dy / now.k);
  }

  /** The whole tree in its frame, and again when the frame changes, until the reader moves it. */
  fit() {
    const { width, height } = this.size(), { top, bottom, right } = this.extent();
    this.fitted = true;
    if (!width || !height) return;
    const scale = Math.min(1, (width - 24) / right, (height - 16) / (bottom - top));
    const [x, y] = [(width - right * scale) / 2, (height - (bottom - top) * scale) / 2 - top * scale];
    this.area.call(this.zoom.transform, d3.zoomIdentity.translate(x, y).scale(scale));
    this.fitted = true;
  }

  /** What the tree covers, in its own units. */
  extent() {
    let [top, bottom, right] = [Infinity, -Infinity, 0];
    for (const place of this.placed.values()) [top, bottom, right] = [Math.min(top, place.x), Math.max(bottom, place.x), Math.max(right, place.y)];
    return { top: top - CARD.height, bottom: bottom + CARD.height, right: right + CARD.width + 24 };
  }

  go(change, ...values) {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    (calm ? this.area : this.area.transition().duration(160)).call(change, ...values);
  }
}

const lastCommitted = () => String(DATA.nodes.findLast(node => node.current && isThere(node))?.id ?? 0);
