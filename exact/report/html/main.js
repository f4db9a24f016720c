"use strict";
// Wires tree, panel, address and keyboard together.

const svg = document.getElementById("tree");
const panel = document.getElementById("panel");
const items = itemsOf(DATA.nodes);

const view = new TreeView(svg, items, item => {
  panel.replaceChildren(...(item.node ? describe(item.node) : describeAction(item.at, item.choice)));
  panel.scrollTop = 0;
  history.replaceState(null, "", `#node=${item.key}`);
  document.getElementById("said").textContent = `Selected: ${spoken(item)}`;
});

/** The item that the address names, or null. */
function linked() {
  return items.get(/^#node=([\d.]+)$/.exec(location.hash)?.[1]) ?? null;
}

addEventListener("hashchange", () => {
  const item = linked();
  if (!item) return;
  view.select(item, { reveal: true });
  document.getElementById("explorer").scrollIntoView({ block: "nearest" });
});

svg.addEventListener("keydown", event => {
  if (event.key === "Enter") view.select(view.cursor);
  else if (event.key === " ") view.fold(view.cursor);
  else if (event.key.startsWith("Arrow") || event.key === "Home") view.move(event.key);
  else return;
  event.preventDefault();
});

const on = (id, act) => document.getElementById(id).addEventListener("click", act);
on("fit", () => view.fit());
on("closer", () => view.go(view.zoom.scaleBy, 1.3));
on("farther", () => view.go(view.zoom.scaleBy, 1 / 1.3));
on("expand", () => { view.expand(); view.fit(); });
on("committed", () => { view.onlyCommitted(); view.select(view.placed.has(view.selected.key) ? view.selected : items.get("0")); view.fit({ readable: true }); });
document.getElementById("untried").addEventListener("change", event => { view.untried = event.target.checked; view.draw(); });

view.open(linked() ?? items.get("0"));
