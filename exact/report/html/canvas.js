"use strict";
// Draws a tree on a canvas: for many items. Only what is in view is drawn, and no more of it than can be made out at the scale.

class CanvasPainter {
  constructor(host, view) {
    this.view = view;
    this.canvas = host.appendChild(make("canvas", { role: "presentation" }));
    this.pen = this.canvas.getContext("2d");
    this.pictures = new Map();
    this.row = host.appendChild(make("div", { role: "treeitem", id: "item-cursor", class: "unseen" }));
    this.click = event => this.clicked(event);
    this.canvas.addEventListener("click", this.click);
    this.paint = paint();
    this.due = 0;
  }

  remove() {
    cancelAnimationFrame(this.due);
    this.canvas.remove();
    this.row.remove();
  }

  moved() { this.soon(); }
  draw() {
    this.places = [...this.view.placed.values()];
    this.paint = paint();
    this.now();
  }
  soon() {
    if (!this.due) this.due = requestAnimationFrame(() => { this.due = 0; this.now(); });
  }

  mark() {
    const { cursor, selected } = this.view, place = this.view.placed.get(cursor.key);
    this.row.textContent = spoken(cursor);
    this.row.setAttribute("aria-level", (place?.depth ?? 0) + 1);
    this.row.setAttribute("aria-selected", String(cursor === selected));
    if (cursor.children.length) this.row.setAttribute("aria-expanded", String(!this.view.folded.has(cursor.key)));
    else this.row.removeAttribute("aria-expanded");
    this.soon();
  }

  clicked(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = this.view.transform.invert([event.clientX - box.left, event.clientY - box.top]);
    for (const place of this.places) {
      const below = y - place.x - CARD.height / 2, beside = Math.abs(x - place.y - CARD.width / 2), knob = below > 0 && beside < 14;
      if (below < -CARD.height || below > (knob ? 2 * CARD.knob : 0) || beside > CARD.width / 2) continue;
      if (knob && (this.view.shown(place.data).length || this.view.folded.has(place.data.key))) this.view.fold(place.data);
      else this.view.select(place.data);
      return;
    }
  }

  now() {
    const box = this.canvas.parentElement.getBoundingClientRect(), dots = devicePixelRatio || 1, { pen } = this;
    if (this.canvas.width !== Math.round(box.width * dots) || this.canvas.height !== Math.round(box.height * dots)) {
      [this.canvas.width, this.canvas.height] = [Math.round(box.width * dots), Math.round(box.height * dots)];
    }
    const { x, y, k } = this.view.transform;
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.clearRect(0, 0, box.width, box.height);
    pen.translate(x, y);
    pen.scale(k, k);
    const seen = this.view.window();
    const inView = this.places.filter(place => overlaps(seen, place));
    this.linkAll(inView, k);
    if (k < 0.3) this.dots(inView, k);
    else for (const place of inView) this.card(place, k);
  }

  linkAll(places, k) {
    const { pen, paint } = this, half = CARD.height / 2, middle = (CARD.row - CARD.height) / 2, at = CARD.width / 2;
    for (const kind of ["plain", "committed"]) {
      pen.beginPath();
      for (const place of places) {
        if (!place.parent || isCommitted(place.data.node) !== (kind === "committed")) continue;
        const [from, to] = [place.parent.x + half, place.x - half];
        pen.moveTo(place.parent.y + at, from);
        if (k < 0.3) pen.lineTo(place.y + at, to);
        else pen.bezierCurveTo(place.parent.y + at, from + middle, place.y + at, to - middle, place.y + at, to);
      }
      pen.strokeStyle = kind === "committed" ? paint.accent : paint.line;
      pen.lineWidth = Math.max(kind === "committed" ? 3 : 1.25, 0.8 / k);
      pen.stroke();
    }
  }

  /** States from afar: their values, one stroke of the brush for each colour; and which of them were committed or found. */
  dots(places, k) {
    const { pen, paint, view } = this, byTone = new Map();
    for (const place of places) {
      const tone = shade(meanOf(place.data));
      if (!byTone.has(tone)) byTone.set(tone, []);
      byTone.get(tone).push(place);
    }
    for (const [tone, alike] of byTone) {
      pen.fillStyle = paint[tone] ?? paint.soft;
      for (const place of alike) pen.fillRect(place.y, place.x - CARD.height / 2, CARD.width, CARD.height);
    }
    pen.lineWidth = Math.max(4, 2.5 / k);
    for (const place of places) {
      const item = place.data, found = view.found.has(item.key);
      if (!found && item !== view.selected && !isCommitted(item.node)) continue;
      pen.strokeStyle = found ? paint.mark : paint.accent;
      pen.strokeRect(place.y, place.x - CARD.height / 2, CARD.width, CARD.height);
    }
  }

  card(place, k) {
    const { pen, paint } = this, item = place.data, [x, y] = [place.y, place.x - CARD.height / 2], tone = shade(meanOf(item));
    const picture = k >= NEAR ? this.picture(item.node) : null, { view } = this;
    pen.beginPath();
    pen.roundRect(x, y, CARD.width, CARD.height, 9);
    pen.fillStyle = item === view.selected ? paint.chosen : paint.face;
    pen.fill();
    pen.save();
    pen.clip();
    pen.fillStyle = paint[tone] ?? paint.soft;
    pen.fillRect(x, y, CARD.value, CARD.height);
    if (picture) pen.drawImage(picture, 0, 0, picture.naturalWidth, picture.naturalWidth * (CARD.height / CARD.thumb), x + CARD.width - CARD.thumb, y, CARD.thumb, CARD.height);
    pen.restore();
    this.border(item, x, y);
    if (k > 0.45) this.text(item, x, y, tone, picture);
    if (view.shown(item).length || view.folded.has(item.key)) this.knob(item, x + CARD.width / 2, y + CARD.height + CARD.knob);
  }

  border(item, x, y) {
    const { pen, paint } = this, status = statusOf(item);
    pen.beginPath();
    pen.roundRect(x, y, CARD.width, CARD.height, 9);
    pen.setLineDash(faint(item) ? [4, 3] : []);
    pen.lineWidth = isCommitted(item.node) ? 2.5 : status === "terminal" ? 1.75 : 1.25;
    pen.strokeStyle = this.view.found.has(item.key) ? paint.mark : isCommitted(item.node) ? paint.accent
      : { drifted: paint.bad, failed: paint.bad, refused: paint.bad, blocked: paint.note, terminal: paint.ink }[status] ?? (faint(item) ? paint.quiet : paint.line);
    pen.stroke();
    pen.setLineDash([]);
    if (item !== this.view.cursor && item !== this.view.selected) return;
    pen.beginPath();
    pen.roundRect(x - 5, y - 5, CARD.width + 10, CARD.height + 10, 13);
    pen.lineWidth = item === this.view.cursor ? 3 : 5;
    pen.strokeStyle = item === this.view.cursor ? paint.ink : paint.accent;
    pen.stroke();
  }

  text(item, x, y, tone, picture) {
    const { pen, paint } = this, right = picture ? CARD.thumb : 0;
    pen.textAlign = "center";
    pen.font = "650 13.5px system-ui, sans-serif";
    pen.fillStyle = paint[`t${tone.slice(1)}`] ?? paint.quiet;
    pen.fillText(short(meanOf(item)), x + CARD.value / 2, y + CARD.height / 2 + 4.5);
    pen.textAlign = "left";
    pen.font = "500 12.5px system-ui, sans-serif";
    pen.fillStyle = faint(item) ? paint.quiet : paint.ink;
    pen.fillText(fitted(labelOf(item), CARD.width - CARD.value - 20 - right), x + CARD.value + 10, y + 20);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = paint.quiet;
    pen.fillText(cardFigures(item), x + CARD.value + 10, y + 38);
    pen.textAlign = "right";
    pen.font = "600 11px system-ui, sans-serif";
    if (!picture) pen.fillText(badge(item), x + CARD.width - 10, y + 38);
  }

  knob(item, x, y) {
    const { pen, paint } = this;
    pen.beginPath();
    pen.roundRect(x - 13, y - 10, 26, 20, 10);
    pen.fillStyle = paint.face;
    pen.fill();
    pen.lineWidth = 1;
    pen.strokeStyle = paint.line;
    pen.stroke();
    pen.textAlign = "center";
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = paint.quiet;
    pen.fillText(this.view.folded.has(item.key) ? `+${count(item)}` : "−", x, y + 4);
  }

  /** A state's picture once it is decoded; until then null, and a new frame when it is. */
  picture(node) {
    const found = pictureOf(node);
    if (!found) return null;
    let image = this.pictures.get(node.picture);
    if (!image) {
      image = new Image();
      image.addEventListener("load", () => this.soon());
      image.src = found.src;
      this.pictures.set(node.picture, image);
    }
    return image.complete && image.naturalWidth ? image : null;
  }
}

/** The colours of the page, as a canvas takes them. */
function paint() {
  const style = getComputedStyle(document.documentElement), get = name => style.getPropertyValue(`--${name}`).trim();
  const found = { ink: get("ink"), quiet: get("quiet"), line: get("edge"), face: get("face"), soft: get("soft"), accent: get("accent"),
    bad: get("bad"), note: get("note"), mark: get("mark"), chosen: get("chosen"), none: get("soft") };
  for (let i = 0; i <= 10; i += 1) [found[`v${i}`], found[`t${i}`]] = [get(`v${i}`), get(`t${i}`)];
  return found;
}
