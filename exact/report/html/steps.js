"use strict";
// The committed steps: their pictures, the walk along them, and the one that is selected.

class Steps {
  constructor(host, view) {
    this.host = host;
    this.view = view;
    host.addEventListener("click", event => {
      const link = event.target.closest("a.go");
      if (!link) return;
      event.preventDefault();
      this.go(this.all.indexOf(link.parentElement));
    });
    document.addEventListener("keydown", event => this.key(event));
    $("ask").addEventListener("click", () => this.ask());
    this.refresh();
  }

  get all() { return [...this.host.querySelectorAll("ol.steps > li")]; }

  /** The item of a step, by its number from 1; null where there is none. */
  item(number) { return this.view.items.get(this.all[number - 1]?.dataset.key) ?? null; }

  /** The number of the step that led to an item, by its key; 0 where there is none. */
  number(key) { return this.all.findLastIndex(step => step.dataset.key === key) + 1; }

  /** The last committed step, which a report opens with. */
  last() { return this.item(this.all.length); }

  /** After the list was written anew. */
  refresh() {
    for (const place of this.host.querySelectorAll(".thumb:empty")) {
      const picture = pictureOf(NODES.get(Number(place.dataset.node)));
      if (picture) place.append(make("img", { src: picture.src, alt: "" }));
    }
    this.mark({ reveal: false });
  }

  mark({ reveal = true } = {}) {
    for (const step of this.all) {
      const here = step.dataset.key === this.view.selected.key, link = step.querySelector("a.go");
      if (here) link.setAttribute("aria-current", "step");
      else link.removeAttribute("aria-current");
      if (here && reveal) this.reveal(step);
    }
  }

  /** Bring a step into view within its column, and nothing else. */
  reveal(step) {
    const top = step.offsetTop, { scrollTop, clientHeight } = this.host;
    if (top + step.offsetHeight > scrollTop + clientHeight) this.host.scrollTop = top + step.offsetHeight - clientHeight;
    else if (top < scrollTop) this.host.scrollTop = top;
  }

  go(index) {
    const item = this.item(index + 1);
    if (!item) return;
    if (CLOCK.at != null) timeline.show(timeline.last);
    this.view.select(item, { reveal: true });
    history.replaceState(null, "", `#step=${index + 1}`);
    this.all[index].querySelector("a.go").focus({ preventScroll: true });
    if (narrow()) $("panel").scrollIntoView({ block: "start" });
  }

  key(event) {
    const by = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
    const free = event.target === document.body || this.host.contains(event.target);
    if (!by || !free || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const next = this.all.findIndex(step => step.dataset.key === this.view.selected.key) + by;
    if (next < 0 || next >= this.all.length) return;
    event.preventDefault();
    this.go(next);
  }

  /** On a telephone the tree comes on request. */
  ask() {
    const asked = $("explorer").classList.toggle("asked");
    $("ask").setAttribute("aria-expanded", String(asked));
    $("ask").textContent = asked ? "Hide the search tree" : "Show the search tree";
    if (asked) this.view.fit();
  }
}

const narrow = () => matchMedia("(max-width: 640px)").matches;
