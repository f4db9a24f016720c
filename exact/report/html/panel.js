"use strict";
// What is known about one state, or about an action that leads to none.

const VIEW = { marks: false };

/** A state's picture with elements outlined; clicking it shows it large. Null where there is none. */
function shot(node, boxes, caption) {
  const picture = pictureOf(node);
  if (!picture) return null;
  const frame = make("button", { type: "button", class: "shot", "aria-label": `${caption}; enlarge`, click: () => enlarge(node, boxes, caption) },
    make("img", { src: picture.src, alt: `Screenshot of state ${node.id}`, width: picture.width, height: picture.height, loading: "lazy" }));
  outline(frame, picture, boxes);
  if (VIEW.marks) marked(frame, picture, node);
  return make("figure", {}, frame, make("figcaption", {}, caption));
}

function outline(frame, picture, boxes) {
  frame.querySelectorAll("i").forEach(mark => mark.remove());
  for (const box of boxes ?? []) frame.append(placed(make("i"), picture, box));
}

/** The set of marks: every element that has a box, with its id. */
function marked(frame, picture, node) {
  const marks = later("marks")[node.observation] ?? [];
  for (const [id, ...box] of marks) frame.append(placed(make("b", {}, make("span", {}, id)), picture, box));
}

function placed(mark, picture, [x, y, width, height]) {
  const share = (part, whole) => `${Math.min(100, Math.max(0, (100 * part) / whole))}%`;
  Object.assign(mark.style, {
    left: share(x, picture.width), top: share(y, picture.height), width: share(width, picture.width), height: share(height, picture.height),
  });
  return mark;
}

/** The button that shows and hides the marks; null where the state has none. */
function markButton(node, again) {
  if (!pictureOf(node) || !later("marks")[node.observation]) return null;
  return make("button", { type: "button", class: "small", "aria-pressed": String(VIEW.marks), click: () => { VIEW.marks = !VIEW.marks; again(); } }, "Set of marks");
}

function enlarge(node, boxes, caption) {
  const dialog = document.getElementById("enlarged");
  dialog.replaceChildren(shot(node, boxes, caption));
  dialog.querySelector("button").addEventListener("click", () => dialog.close());
  dialog.showModal();
}

/** The choice that was committed in a state, else the most visited one. */
function favourite(node) {
  const choices = node.choices ?? [];
  const committed = choices.find(choice => NODES.get(choice.child)?.committed);
  return committed ?? [...choices].sort((a, b) => (b.visits - a.visits) || (b.prior - a.prior))[0] ?? null;
}

function describe(node) {
  const choice = choiceTo(node), parent = NODES.get(node.parent), next = favourite(node);
  const after = parent ? `After, state ${node.id}` : `State ${node.id}`, before = shot(parent, choice?.boxes, `Before, in state ${node.parent}`);
  const own = shot(node, next?.boxes, next?.boxes ? `${after}; outlined: what ${next.words} acts on` : after);
  return [
    heading(node, choice, parent),
    make("div", { class: "shots" }, before, own),
    reasonOf(node, choice),
    markButton(node, () => panelOf(node)),
    commandsFor(node),
    parent && proposals(parent, before, "Alternatives", true),
    parent?.observation != null && node.observation != null && changed(longText(parent.observation), longText(node.observation)),
    numbers(choice?.prior, choice ? standing(choice).visits : node.visits, choice ? standing(choice).value ?? node.mean : node.mean, node.value, !choice),
    evaluationOf(node),
    proposals(node, own, "Next actions", !parent),
    (node.shown ?? []).map(shown),
    observed(node, parent),
    reached(node),
    outside(node),
    (node.failures ?? []).length > 0 && section("Failures", true, ...node.failures.map(prose)),
    calls(node),
  ].flat().filter(Boolean);
}

/** Why the policy proposed it. The list of steps shows a short reason of a committed action. */
function reasonOf(node, choice) {
  const text = longText(choice?.rationale);
  return text && !(node.committed && text.length <= 200) && section("Why it was proposed", true, prose(text));
}

/** What was seen in a state; where an end shows nothing, what was seen before it. */
function observed(node, parent) {
  const last = node.observation != null ? node : parent;
  return last?.observation != null && section(last === node ? "Observation" : "Observation before it", false, block(longText(last.observation)));
}

function heading(node, choice, parent) {
  const status = statusOf({ node }), step = steps?.number(String(node.id));
  const marks = [
    node.current ? tag("last state", "good") : node.committed && tag("committed", "good"), node.pending && tag("in flight"),
    STATUS[status] && !node.current && tag(STATUS[status], status), writeOf(node) && tag(writeOf(node).what, "blocked"),
    (node.marks ?? []).length > 0 && tag(`the page ${node.marks.join(", ")}`, "failed"),
  ].filter(Boolean);
  return make("header", {},
    make("p", { class: "quiet" }, `State ${node.id}, ${step ? `step ${step}` : `${plural(node.depth, "action")} from the start`}`,
      parent ? make("span", {}, ", after ", toNode(parent.id)) : "", marks.length ? " " : "", marks),
    make("h2", { dir: "auto" }, choice ? make("code", {}, choice.words) : "The start"),
    node.reason ? make("p", { class: "why", dir: "auto" }, sentence(node.reason)) : "",
    node.note ? make("p", { class: "why", dir: "auto" }, node.note) : "",
    node.title || node.url ? make("p", { class: "quiet place", dir: "auto" }, [node.title, node.url].filter(Boolean).join(" · ")) : "");
}

const sentence = text => `${text[0].toUpperCase()}${text.slice(1)}.`;

function numbers(prior, visits, mean, value, first) {
  const one = (name, meaning, text, kind) => make("div", { class: kind }, make("dt", { title: meaning }, name, make("small", {}, meaning)), make("dd", {}, text));
  return make("dl", { class: "numbers" },
    one("V", "value", figure(value), shade(value)), one(first ? "mean" : "Q", first ? "of all values" : "action value", figure(mean), shade(mean)),
    one("N", "visits", String(visits ?? 0), ""), one("P", "prior", figure(prior), ""));
}

function evaluationOf(node) {
  const evaluation = node.evaluation;
  if (!evaluation) return section("Evaluation", true, make("p", { class: "quiet" }, "This state was not evaluated."));
  const samples = evaluation.samples ?? [], debated = evaluation.arguments ?? [], judges = evaluation.judges ?? [];
  return section(`Evaluation ${figure(evaluation.value)}`, true,
    evaluation.rationale != null ? prose(longText(evaluation.rationale)) : "",
    samples.length > 1 ? make("p", { class: "quiet" }, `${plural(samples.length, "sample")}: ${samples.map(figure).join(", ")}`) : "",
    evaluation.disagreement ? make("p", { class: "quiet" }, disagreement(evaluation)) : "",
    debated.length ? section(`Arguments, in the order in which they were made (${debated.length})`, true, make("ol", { class: "arguments" }, debated.map(argued))) : "",
    judges.length ? section(`Judges (${judges.length})`, true, make("ul", {}, judges.map(each => make("li", { dir: "auto" }, each)))) : "");
}

function disagreement(evaluation) {
  const parts = [
    evaluation.within && `${figure(evaluation.within)} within a judge`, evaluation.between && `${figure(evaluation.between)} between judges`,
    evaluation.order_effect && `order effect ${evaluation.order_effect > 0 ? "+" : ""}${figure(evaluation.order_effect)}: the side read first ${evaluation.order_effect > 0 ? "gains" : "loses"}`,
  ].filter(Boolean);
  return `Disagreement ${figure(evaluation.disagreement)}${parts.length ? ` (${parts.join("; ")})` : ""}.`;
}

const argued = each => make("li", { class: each.side }, tag(each.side === "for" ? "for success" : "against it", each.side === "for" ? "good" : "failed"),
  make("small", { class: "inline" }, ` round ${(each.round ?? 0) + 1} `), prose(longText(each.text)));

/** Why an action was not committed in a state: how it was rated when the other one was chosen. Its own end is told by its status. */
function lost(choice, winner, at) {
  const state = NODES.get(choice.child);
  if (!winner || choice === winner || choice.reason) return "";
  if (state && !["open", "terminal", "exhausted"].includes(state.status)) return sentence(state.reason);
  const mine = standing(choice, at), best = standing(winner, at);
  if (!mine.visits) return "Not tried.";
  if (mine.value < best.value) return `Rated ${figure(mine.value)} against ${figure(best.value)}.`;
  return `Visited ${plural(mine.visits, "time")} against ${best.visits}.`;
}

function proposals(node, own, title, open) {
  const choices = node.choices ?? [], winner = choices.find(choice => NODES.get(choice.child)?.committed);
  const at = CLOCK.at ?? NODES.get(winner?.child)?.stood ?? null;
  if (!choices.length) return null;
  const frame = own?.querySelector(".shot"), picture = pictureOf(node), usual = favourite(node)?.boxes;
  const rows = choices.map(choice => make("tr", {
    class: NODES.get(choice.child)?.committed ? "chosen" : null,
    mouseenter: () => frame && outline(frame, picture, choice.boxes), mouseleave: () => frame && outline(frame, picture, usual),
  },
  make("td", {}, make("code", { dir: "auto" }, choice.child != null ? make("a", { href: `#node=${choice.child}` }, choice.words) : choice.words),
    choice.status && choice !== winner ? make("span", {}, " ", tag(STATUS[choice.status] ?? choice.status, choice.status)) : "",
    choice === winner ? make("span", {}, " ", tag("chosen", "good")) : "",
    choice.reason && choice !== winner ? make("small", { dir: "auto" }, sentence(choice.reason)) : "",
    make("small", { class: "lost", dir: "auto" }, lost(choice, winner, at)),
    choice !== winner && choice.rationale != null ? make("small", { dir: "auto" }, longText(choice.rationale)) : ""),
  ...[figure(choice.prior), String(standing(choice, at).visits), figure(standing(choice, at).value)].map(text => make("td", { class: "n" }, text))));
  return section(`${title} (${choices.length})`, open, table(["Action", "P", "N", "Q"], rows));
}

function shown(part) {
  return section(`Reflections shown to the ${part.kind} (${part.reflections.length})`, true, ...part.reflections.map(reflection =>
    make("blockquote", { class: "reflection" }, make("p", { dir: "auto" }, reflection.text),
      make("footer", {}, "After ", make("code", { dir: "auto" }, reflection.action), `: surprise ${reflection.surprise > 0 ? "+" : ""}${figure(reflection.surprise)}`,
        reflection.tainted ? make("span", {}, " ", tag("holds text of a page")) : "", make("br"),
        make("span", { class: "quiet" }, reflection.source, `; memory ${part.memory}`)))));
}

function reached(node) {
  const routes = node.routes ?? [];
  const said = (node.commands ?? []).map(each => make("p", {}, `Command of a viewer: ${each}.`));
  const time = node.seconds != null ? `The step that led here took ${node.seconds.toFixed(2)} s.` : "";
  const first = make("p", { class: "quiet" }, `First seen ${node.born.toFixed(1)} s after the start, at iteration ${node.iteration}. ${time}`);
  const rows = routes.map(route => make("tr", {}, ...[
    route.node === node.id ? "here" : `state ${route.node}`, way(route), route.match,
    route.reason ?? "", `${(route.seconds ?? 0).toFixed(2)} s`].map((text, place) => make("td", { class: place === 4 ? "n" : null }, text))));
  return section("How it was reached", false, first, said, rows.length ? table(["Environment moved to", "Route", "Match", "Reason", "s"], rows) : "");
}

function way(route) {
  const begin = {
    reuse: "an environment was here", advance: "an environment was on the way", restore: "a snapshot was restored", fork: "a fork of a snapshot",
    "restore+replay": "a snapshot on the way was restored", "fork+replay": "a fork of a snapshot on the way", replay: "reset",
  }[route.route] ?? route.route;
  return route.transitions || route.route.endsWith("replay") ? `${begin}, then ${plural(route.transitions ?? 0, "step")} replayed` : begin;
}

function outside(node) {
  const traces = node.traces ?? [];
  if (!traces.length) return null;
  const rows = traces.map(trace => make("tr", { class: trace.write ? "sent" : null }, ...[
    trace.phase, trace.what, [trace.method, trace.url, trace.detail].filter(Boolean).join(" "), String(trace.status || "–"),
  ].map((text, place) => make("td", { class: place === 3 ? "n" : null, dir: "auto" }, text))));
  return section(`Requests and other side effects (${traces.length})`, true, table(["When", "What", "Request", "#"], rows));
}

function calls(node) {
  const sum = (node.calls ?? []).length > 1 ? [make("p", { class: "quiet sum" }, `In this state: ${node.spent}.`)] : [];
  return sum.concat((node.calls ?? []).map(call => section(`Model call: ${call.role}${call.attempt ? `, attempt ${call.attempt + 1}` : ""}`, false,
    make("p", { class: "quiet" }, [call.model, call.prompt, call.sampling, call.usage, `${call.seconds.toFixed(1)} s`].filter(Boolean).join(" · ")),
    ...(call.request ?? []).map(said => section(`Prompt: ${said.role}`, false, block(longText(said.text)))),
    ...(call.answers ?? []).map((said, place) => section(`Answer ${place + 1}`, true, block(longText(said.text)))),
    call.raw != null ? section("Raw answer", false, block(longText(call.raw))) : "")));
}

/** An action that leads to no state: refused, failed, or not tried. */
function describeAction(node, choice) {
  const before = shot(node, choice.boxes, `State ${node.id}; outlined: what ${choice.words} acts on`);
  return [
    make("header", {}, make("p", { class: "quiet" }, "An action in ", toNode(node.id), " ", tag(STATUS[choice.status] ?? "not tried", choice.status ?? "")),
      make("h2", { dir: "auto" }, make("code", {}, choice.words)), choice.reason ? make("p", { class: "why", dir: "auto" }, choice.reason) : ""),
    make("div", { class: "shots" }, before),
    choice.rationale != null && section("Why it was proposed", true, prose(longText(choice.rationale))),
    markButton(node, () => panelOf(null, node, choice)),
    proposals(node, before, "Alternatives", true),
  ].filter(Boolean);
}

/** Fill the panel. */
function panelOf(node, at, choice) {
  $("panel").replaceChildren(...(node ? describe(node) : describeAction(at, choice)));
}

/** In the live view: what can be asked for in a state. Replaced there. */
let commandsFor = () => null;
