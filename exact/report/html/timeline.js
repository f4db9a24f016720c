"use strict";
// How the search grew: a slider over its iterations, and two plots along it.

const SVG = "http://www.w3.org/2000/svg";
const drawn = (tag, attributes, ...children) => {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
const PLOT = { width: 560, height: 210, left: 38, right: 12, top: 12, bottom: 26 };
const KINDS = { money: "money", calls: "model calls", tokens: "tokens", transitions: "transitions", evaluations: "evaluations", actions: "actions", seconds: "seconds" };

class Timeline {
  constructor(view) {
    this.view = view;
    this.slider = $("slider");
    this.playing = 0;
    this.slider.addEventListener("input", () => { this.stop(); this.show(Number(this.slider.value)); });
    $("play").addEventListener("click", () => (this.playing ? this.stop() : this.play()));
    this.refresh();
  }

  get last() { return DATA.timeline.at(-1)?.iteration ?? 0; }

  /** After the data grew. */
  refresh() {
    const at = CLOCK.at;
    this.slider.max = this.last;
    if (at == null) this.slider.value = this.last;
    $("timeline").hidden = this.last < 1;
    this.words(at ?? this.last);
    this.plots();
  }

  show(iteration) {
    const at = Math.max(0, Math.min(this.last, iteration));
    CLOCK.at = at >= this.last ? null : at;
    this.slider.value = at;
    this.view.draw();
    this.words(at);
    this.cursor();
  }

  step(by) { this.stop(); this.show((CLOCK.at ?? this.last) + by); }

  words(at) {
    const moment = momentAt(at), spent = moment?.spent ?? {};
    const text = [`iteration ${at} of ${this.last}`, moment && plural(moment.nodes, "state"), moment && `${moment.t.toFixed(1)} s`, spent.money ? `$${spent.money.toFixed(4)}` : ""];
    const said = text.filter(Boolean).join(" · ");
    $("when").textContent = said;
    this.slider.setAttribute("aria-valuetext", said);
  }

  play() {
    const every = Math.max(1, Math.round(this.last / 150));
    if (CLOCK.at == null) this.show(0);
    $("play").textContent = "❚❚";
    $("play").setAttribute("aria-label", "Pause the replay");
    this.playing = setInterval(() => {
      this.show((CLOCK.at ?? this.last) + every);
      if (CLOCK.at == null) this.stop();
    }, 90);
  }

  stop() {
    clearInterval(this.playing);
    this.playing = 0;
    $("play").textContent = "▶";
    $("play").setAttribute("aria-label", "Replay the growth of the tree");
  }

  plots() {
    if (!$("plots")) return;
    $("plots").hidden = DATA.timeline.length < 2;
    if ($("plots").hidden) return;
    this.budget();
    this.values();
    this.cursor();
  }

  x(iteration) { return PLOT.left + (iteration / Math.max(1, this.last)) * (PLOT.width - PLOT.left - PLOT.right); }
  y(share) { return PLOT.height - PLOT.bottom - share * (PLOT.height - PLOT.top - PLOT.bottom); }

  /** What was spent, as a share of its limit, or where there is none of what it came to. */
  budget() {
    const end = DATA.timeline.at(-1).spent ?? {};
    const kinds = Object.keys(KINDS).filter(kind => DATA.timeline.some(moment => moment.spent?.[kind]));
    const lines = kinds.map((kind, place) => {
      const limit = DATA.limits[kind], most = limit || Math.max(...DATA.timeline.map(moment => moment.spent?.[kind] ?? 0)) || 1;
      const amount = kind === "money" ? `$${(end[kind] ?? 0).toFixed(4)}` : Math.round(end[kind] ?? 0).toLocaleString("en");
      return { place, name: `${KINDS[kind]}: ${amount}${limit ? ` of ${limit.toLocaleString("en")}` : ""}`, dashed: !limit,
        points: DATA.timeline.map(moment => [moment.iteration, Math.min(1, (moment.spent?.[kind] ?? 0) / most)]) };
    });
    this.plot($("budget"), lines, "Budget used, as a share of its limit; dashed without a limit");
  }

  /** Q of the root's actions, between one commit and the next. */
  values() {
    const at = CLOCK.at ?? this.last, root = momentAt(at)?.root ?? 0;
    const roots = new Map();
    for (const moment of DATA.timeline) {
      for (const [index, , q] of moment.edges ?? []) {
        const key = `${moment.root}.${index}`;
        if (!roots.has(key)) roots.set(key, { root: moment.root, index, points: [] });
        roots.get(key).points.push([moment.iteration, q]);
      }
    }
    const ranked = new Map();
    const lines = [...roots.values()].map(each => {
      const place = ranked.get(each.root) ?? 0;
      ranked.set(each.root, place + 1);
      const choice = NODES.get(each.root)?.choices?.[each.index];
      return { place, points: each.points, faint: each.root !== root, name: each.root === root ? `${figure(each.points.at(-1)[1])} ${choice?.words ?? `action ${each.index}`}` : "" };
    });
    this.plot($("values"), lines, `Q of the actions in state ${root}; thin: in other states of the committed path`);
  }

  plot(host, lines, title) {
    const { width, height, left, right } = PLOT;
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}. ${lines.map(line => line.name).filter(Boolean).join("; ")}` });
    for (const share of [0, 0.5, 1]) {
      svg.append(drawn("line", { x1: left, x2: width - right, y1: this.y(share), y2: this.y(share), class: "grid" }),
        drawn("text", { x: left - 6, y: this.y(share) + 4, class: "tick end" }, share.toFixed(1)));
    }
    for (const moment of DATA.timeline.filter(each => each.step != null)) {
      svg.append(drawn("line", { x1: this.x(moment.iteration), x2: this.x(moment.iteration), y1: this.y(0), y2: this.y(1), class: "commit" },
        drawn("title", {}, `step ${moment.step} was committed`)));
    }
    svg.append(drawn("text", { x: left, y: height - 8, class: "tick" }, "0"), drawn("text", { x: width - right, y: height - 8, class: "tick end" }, `iteration ${this.last}`));
    for (const line of lines) {
      const d = line.points.map(([iteration, share], i) => `${i ? "L" : "M"}${this.x(iteration).toFixed(1)},${this.y(share).toFixed(1)}`).join("");
      svg.append(drawn("path", { d: line.points.length > 1 ? d : `${d}h3`, class: `line s${line.place % 6} ${line.faint ? "faint" : ""} ${line.dashed || line.place > 5 ? "dashed" : ""}` }));
    }
    svg.append(drawn("line", { class: "now", y1: this.y(0), y2: this.y(1), x1: 0, x2: 0 }));
    host.replaceChildren(make("figcaption", {}, title), svg,
      make("ul", { class: "key" }, lines.filter(line => line.name && !line.faint).map(line => make("li", { class: `s${line.place % 6} ${line.dashed || line.place > 5 ? "dashed" : ""}`, dir: "auto" }, line.name))));
  }

  /** Where the slider stands, in the plots. */
  cursor() {
    const at = CLOCK.at ?? this.last, root = momentAt(at)?.root ?? 0;
    if (root !== this.root && DATA.timeline.length > 1) { this.root = root; this.values(); }
    for (const line of document.querySelectorAll("#plots .now")) {
      line.setAttribute("x1", this.x(at));
      line.setAttribute("x2", this.x(at));
    }
  }
}
