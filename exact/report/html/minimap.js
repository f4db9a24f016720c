"use strict";
// A small picture of the whole tree, with a frame about what is in view. Pressing or dragging in it moves the view.

class Minimap {
  constructor(canvas, view) {
    this.canvas = canvas;
    this.view = view;
    this.pen = canvas.getContext("2d");
    this.due = 0;
    canvas.addEventListener("pointerdown", event => { canvas.setPointerCapture(event.pointerId); this.go(event); });
    canvas.addEventListener("pointermove", event => { if (event.buttons) this.go(event); });
  }

  soon() {
    if (!this.due) this.due = requestAnimationFrame(() => { this.due = 0; this.draw(); });
  }

  scale() {
    const { top, bottom, right } = this.view.extent(), { clientWidth: width, clientHeight: height } = this.canvas;
    return { top, x: (width - 8) / right, y: Math.min((height - 8) / (bottom - top), (width - 8) / right) };
  }

  draw() {
    const { view, pen, canvas } = this, dots = devicePixelRatio || 1, { clientWidth: width, clientHeight: height } = canvas;
    const seen = view.window(), { top, bottom, right } = view.extent();
    const all = seen.left <= 0 && seen.right >= right - 24 && seen.top <= top + CARD.height / 2 && seen.bottom >= bottom - CARD.height / 2;
    canvas.classList.toggle("idle", all);
    if (all || !width) return;
    [canvas.width, canvas.height] = [width * dots, height * dots];
    const colours = paint(), by = this.scale();
    pen.setTransform(dots, 0, 0, dots, 4 * dots, 4 * dots);
    for (const place of view.placed.values()) {
      pen.fillStyle = isCommitted(place.data.node) ? colours.accent : view.found.has(place.data.key) ? colours.mark : colours[shade(meanOf(place.data))];
      pen.fillRect(place.y * by.x, (place.x - CARD.height / 2 - top) * by.y, Math.max(1.5, CARD.width * by.x), Math.max(1, CARD.height * by.y));
    }
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.5;
    const [x, y] = [Math.max(-2, seen.left * by.x), Math.max(-2, (seen.top - top) * by.y)];
    pen.strokeRect(x, y, Math.min(width - 6, seen.right * by.x) - x, Math.min(height - 6, (seen.bottom - top) * by.y) - y);
  }

  go(event) {
    const box = this.canvas.getBoundingClientRect(), by = this.scale();
    this.view.area.call(this.view.zoom.translateTo, (event.clientX - box.left - 4) / by.x, (event.clientY - box.top - 4) / by.y + by.top);
  }
}
