"use strict";
// Draws a tree as SVG: up to some hundreds of items each is an element with a name for screen readers.

class SvgPainter {
  constructor(host, view) {
    this.view = view;
    this.svg = d3.select(host).append("svg").attr("role", "presentation").attr("focusable", "false");
    this.stage = this.svg.append("g").attr("role", "presentation");
    this.links = this.stage.append("g").attr("class", "links").attr("role", "presentation").attr("aria-hidden", "true");
    this.cards = this.stage.append("g").attr("role", "presentation");
  }

  remove() { this.svg.remove(); }

  moved(transform) {
    this.stage.attr("transform", transform);
    const near = transform.k >= NEAR;
    this.stage.classed("near", near);
    if (near) this.thumbnails();
    const scale = transform.k >= FAR ? 1 : Math.floor(10 * transform.k) / 10;
    if (scale !== this.scale) this.label(scale);
  }

  /** Far away a card says less, in letters that can still be read: its value and the names; from very far only its colour. */
  label(scale) {
    this.scale = scale;
    const far = scale < 1, size = far ? 11.5 / scale : 12.5, value = far ? Math.min(CARD.width - 9, Math.max(CARD.value, 30 / scale)) : CARD.value;
    const wide = (CARD.width - value - 14) * (12.5 / size);
    this.stage.classed("far", far).classed("dots", scale < LEGIBLE).attr("font-size", far ? size : null);
    this.cards.selectAll("g.card").call(cards => {
      cards.select(".value").attr("d", `M9,0 H${value} V${CARD.height} H9 A9,9 0 0 1 0,${CARD.height - 9} V9 A9,9 0 0 1 9,0 Z`);
      cards.select(".figure").attr("x", value / 2).attr("y", CARD.height / 2 + 0.36 * size);
      cards.select(".whole").attr("x", value + 8).attr("y", far ? CARD.height / 2 + 0.36 * size : 20).text(place => fitted(labelOf(place.data, far), wide));
    });
  }

  draw() {
    this.drawLinks([...this.view.placed.values()].filter(place => place.parent));
    this.drawCards([...this.view.placed.values()]);
    this.scale = 0;
    this.moved(this.view.transform);
  }

  drawLinks(places) {
    const [half, middle] = [CARD.height / 2, (CARD.row - CARD.height) / 2], at = CARD.width / 2;
    this.links.selectAll("path").data(places, place => place.data.key).join("path")
      .attr("class", place => `${isCommitted(place.data.node) ? "committed" : ""} ${faint(place.data) ? "faint" : ""}`)
      .attr("stroke-width", place => thickness(place.data))
      .attr("d", ({ parent: s, ...t }) =>
        `M${s.y + at},${s.x + half} C${s.y + at},${s.x + half + middle} ${t.y + at},${t.x - half - middle} ${t.y + at},${t.x - half}`);
  }

  drawCards(places) {
    const view = this.view;
    const cards = this.cards.selectAll("g.card").data(places, place => place.data.key).join(enter => this.addCards(enter));
    cards.attr("transform", place => `translate(${place.y},${place.x - CARD.height / 2})`)
      .attr("class", place => ["card", statusOf(place.data), isCommitted(place.data.node) && "committed", faint(place.data) && "faint",
        place.data.node?.pending && "pending", view.folded.has(place.data.key) && "shut", place.data.node && isCurrent(place.data.node) && "current",
        view.found.has(place.data.key) && "found"].filter(Boolean).join(" "))
      .attr("aria-label", place => spoken(place.data))
      .attr("aria-expanded", place => (place.data.children.length ? String(!view.folded.has(place.data.key)) : null))
      .attr("aria-level", place => place.depth + 1);
    cards.select("title").text(place => spoken(place.data));
    cards.select(".value").attr("class", place => `value ${shade(meanOf(place.data))}`);
    cards.select(".figure").attr("class", place => `figure ${shade(meanOf(place.data))}`).text(place => short(meanOf(place.data)));
    cards.select(".stats").text(place => cardFigures(place.data));
    cards.select(".badge").text(place => badge(place.data));
    cards.select(".fold").attr("visibility", place => (view.shown(place.data).length || view.folded.has(place.data.key) ? null : "hidden"));
    cards.select(".fold text").text(place => (view.folded.has(place.data.key) ? `+${count(place.data)}` : "−"));
  }

  addCards(enter) {
    const wide = CARD.width - CARD.value - 20;
    const card = enter.append("g").attr("role", "treeitem").attr("id", place => `item-${place.data.key}`)
      .on("click", (event, place) => this.view.select(place.data));
    card.append("title");
    card.append("rect").attr("class", "halo").attr("x", -5).attr("y", -5).attr("width", CARD.width + 10).attr("height", CARD.height + 10).attr("rx", 13);
    card.append("rect").attr("class", "face").attr("width", CARD.width).attr("height", CARD.height).attr("rx", 9);
    card.append("path").attr("class", "value");
    card.append("text").attr("class", "figure");
    card.append("text").attr("class", "action whole");
    card.filter(place => place.data.node?.picture).classed("pictured", true)
      .append("text").attr("class", "action cut").attr("x", CARD.value + 10).attr("y", 20).text(place => fitted(labelOf(place.data), wide - CARD.thumb));
    card.append("text").attr("class", "stats").attr("x", CARD.value + 10).attr("y", 38);
    card.append("text").attr("class", "badge").attr("x", CARD.width - 10).attr("y", 38);
    card.append("g").attr("class", "thumb").attr("transform", `translate(${CARD.width - CARD.thumb},1)`);
    card.append("rect").attr("class", "border").attr("width", CARD.width).attr("height", CARD.height).attr("rx", 9);
    const fold = card.append("g").attr("class", "fold").attr("transform", `translate(${CARD.width / 2},${CARD.height + CARD.knob})`)
      .on("click", (event, place) => { event.stopPropagation(); this.view.fold(place.data); });
    fold.append("rect").attr("x", -13).attr("y", -10).attr("width", 26).attr("height", 20).attr("rx", 10);
    fold.append("text").attr("y", 4);
    return card;
  }

  /** Give the cards in view their pictures. */
  thumbnails() {
    const seen = this.view.window();
    this.cards.selectAll("g.card.pictured, g.card").filter(place => place.data.node?.picture && overlaps(seen, place)).select(".thumb")
      .each(function (place) {
        const picture = pictureOf(place.data.node);
        if (!picture || this.childNodes.length) return;
        d3.select(this).append("image").attr("href", picture.src).attr("width", CARD.thumb - 1).attr("height", CARD.height - 2)
          .attr("preserveAspectRatio", "xMinYMin slice").attr("aria-hidden", "true");
      });
    this.cards.selectAll("g.card").classed("pictured", place => Boolean(pictureOf(place.data.node)));
  }

  /** Show which item the keyboard is at, and which one the panel describes. */
  mark() {
    const { cursor, selected } = this.view;
    this.cards.selectAll("g.card").classed("cursor", place => place.data === cursor).classed("selected", place => place.data === selected)
      .attr("aria-selected", place => String(place.data === selected));
  }
}

/** From this scale on cards show pictures. */
const NEAR = 1.35;
/** Below these scales cards show names alone, and colours alone. */
const FAR = 0.85, LEGIBLE = 0.3;
const short = value => figure(value).replace(/^0\./, ".");
const thickness = item => 1.25 + Math.min(3, Math.log2(1 + standing(item.choice).visits) / 2);
const overlaps = (box, place) => place.y < box.right && place.y + CARD.width > box.left && place.x - CARD.height < box.bottom && place.x + CARD.height > box.top;
