"use strict";
// Wires tree, panel, search, timeline, address and keyboard together.

const host = $("tree");
let items = itemsOf(DATA.nodes), begun = false, steps = null;

const view = new TreeView(host, items, item => {
  panelOf(item.node, item.at, item.choice);
  $("panel").scrollTop = 0;
  if (begun) $("explorer").classList.add("chosen");
  if (begun) history.replaceState(null, "", `#node=${item.key}`);
  steps?.mark();
  $("said").textContent = `Selected: ${spoken(item)}`;
});
const minimap = new Minimap($("minimap"), view);
view.onMove = () => { if (view.placed) minimap.soon(); };

/** The item that the address names, or null. */
function linked() {
  const [, kind, key] = /^#(node|step)=([\d.]+)$/.exec(location.hash) ?? [];
  return (kind === "step" ? steps.item(Number(key)) : items.get(key)) ?? null;
}

addEventListener("hashchange", () => {
  const item = linked();
  if (!item) return;
  if (CLOCK.at != null) timeline.show(timeline.last);
  view.select(item, { reveal: true });
  $("explorer").scrollIntoView({ block: "nearest" });
});

const KEYS = {
  Enter: () => view.select(view.cursor), " ": () => view.fold(view.cursor), f: () => view.fit(), "/": () => find.field.focus(), "?": () => $("help").showModal(),
  "+": () => view.go(view.zoom.scaleBy, 1.3), "=": () => view.go(view.zoom.scaleBy, 1.3), "-": () => view.go(view.zoom.scaleBy, 1 / 1.3),
  n: () => find.step(1), N: () => find.step(-1), "[": () => timeline.step(-1), "]": () => timeline.step(1), p: () => $("play").click(),
};
host.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End") view.move(event.key);
  else if (KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
});

const on = (id, act) => $(id).addEventListener("click", act);
on("fit", () => view.fit());
on("closer", () => view.go(view.zoom.scaleBy, 1.3));
on("farther", () => view.go(view.zoom.scaleBy, 1 / 1.3));
on("expand", () => { view.expand(); view.fit(); });
on("committed", () => { view.onlyCommitted(); view.draw(); view.select(view.placed.has(view.selected.key) ? view.selected : items.get("0")); view.fit(); });
on("keys", () => $("help").showModal());
$("untried").addEventListener("change", event => { view.untried = event.target.checked; view.draw(); });

steps = new Steps($("steps"), view);
begun = linked() != null;
view.open(linked() ?? steps.last() ?? items.get("0"));
begun = true;
const find = new Find($("find"), view);
const timeline = new Timeline(view);
themed(() => { view.draw(); minimap.soon(); });
performance.mark("interactive");
document.documentElement.dataset.ready = "yes";
