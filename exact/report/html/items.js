"use strict";
// What the tree shows: an item is a state, or an action that leads to none. And where each of them stands.

const CARD = { width: 216, height: 50, value: 42, row: 94, column: 232, thumb: 70, knob: 10 };
const pen = document.createElement("canvas").getContext("2d");

/** All items by key: `17` is a state, `17.2` the third action of state 17, which leads to no state. */
function itemsOf(nodes) {
  const items = new Map();
  for (const node of nodes) items.set(String(node.id), { key: String(node.id), node, choice: choiceTo(node), via: node.via, children: [] });
  for (const node of nodes) {
    const item = items.get(String(node.id));
    if (node.parent != null) items.get(String(node.parent))?.children.push(item);
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

/** Depth goes downwards, as the steps do. Each state stands as far left as there is room in its row, no further left than the one
 * before it: the committed path, which comes first, is one straight line, and the others follow beside it. x is down, y is right. */
function layOut(root) {
  const free = [], stack = [[root, 0]];
  while (stack.length) {
    const [state, least] = stack.pop();
    const gap = free[state.depth] && state === state.parent.children[0] ? 0.35 : 0;
    const column = Math.max(least, (free[state.depth] ?? 0) + gap);
    free[state.depth] = column + 1;
    [state.x, state.y] = [state.depth * CARD.row, column * CARD.column];
    for (const child of (state.children ?? []).slice().reverse()) stack.push([child, column]);
  }
}

/** Of a state of the committed path only its end is a status: that the search closed it since says nothing to a reader. */
const statusOf = item => {
  if (item.node && isCommitted(item.node) && item.node.status !== "terminal") return "open";
  return (item.node ? item.node.status : item.choice.status) ?? (item.node ? "open" : "untried");
};
/** Whether an item is not the first outcome of its action: its figures are its own. */
const isOther = item => ["unlike", "outcome"].includes(item.node?.status);
const faint = item => !["open", "terminal", "outcome"].includes(statusOf(item)) && !isCommitted(item.node);
const titleOf = item => item.choice?.words ?? "start";
/** What stands on a card: without ids where elements have names; far away their names alone. */
const labelOf = (item, far) => {
  const names = far ? [...titleOf(item).matchAll(/"((?:[^"\\]|\\.)+)"/g)].map(found => found[1]) : [];
  return names.length ? names.join(": ") : titleOf(item).replace(/\[[^\]]*\] (?=[\w-]+ ")/g, "");
};
const count = item => item.children.reduce((sum, child) => sum + 1 + count(child), 0);

function meanOf(item) {
  if (isOther(item)) return item.node.mean ?? item.choice?.value;
  if (!item.choice) return CLOCK.at == null ? item.node.mean : rootMean();
  return standing(item.choice).value ?? (CLOCK.at == null ? item.node?.mean : null);
}

/** Of the first state at an earlier time: the mean over its actions. */
function rootMean() {
  const all = (DATA.nodes[0].choices ?? []).map(standing), visits = all.reduce((sum, each) => sum + each.visits, 0);
  return visits ? all.reduce((sum, each) => sum + each.visits * (each.value ?? 0), 0) / visits : DATA.nodes[0].value;
}

function badge(item) {
  const status = statusOf(item);
  const words = [item.node?.pending && CLOCK.at == null && "in flight", writeOf(item.node) && "write",
    status === "untried" ? "not tried" : leftMean(item) ? "left the mean" : STATUS[status]];
  return words.filter(Boolean).join(" · ");
}

/** Whether exhaustion took an action's values out of the mean: Q is then its best continuation. */
const leftMean = item => statusOf(item) === "exhausted" && (item.node?.reason ?? item.choice.reason ?? "").endsWith("best continuation");

/** The figures of a card; beside a badge there is no room for P. */
const cardFigures = item => (badge(item) ? statistics(item).replace(/ {3}P .*/, "") : statistics(item));

function statistics(item) {
  const own = !item.choice || isOther(item);
  const visits = own ? item.node.visits : standing(item.choice).visits;
  return `N ${visits ?? 0}   ${own ? "mean" : "Q"} ${figure(meanOf(item))}` + (item.choice && !own ? `   P ${figure(item.choice.prior)}` : "");
}

function spoken(item) {
  const where = item.node ? `State ${item.node.id}` : "Action";
  return [where, titleOf(item), statistics(item).replace(/\s+/g, " "), badge(item), isCommitted(item.node) && "committed"].filter(Boolean).join(", ");
}

/** The write of a state that reached furthest; undefined where there is none. */
const writeOf = node => {
  const sent = (node?.traces ?? []).filter(trace => trace.write);
  return sent.find(trace => trace.what === "sent outside") ?? sent[0];
};

const widths = new Map();
/** Text cut to a width in pixels, at 12.5 pixels a letter's height. */
function fitted(text, width) {
  const key = `${width} ${text}`;
  if (widths.has(key)) return widths.get(key);
  pen.font = "500 12.5px system-ui, sans-serif";
  let found = text;
  if (text.length > width / 12 && pen.measureText(text).width > width) {
    let low = 1, high = Math.min(text.length, 60);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (pen.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
      else high = middle - 1;
    }
    found = `${text.slice(0, low).trimEnd()}…`;
  }
  widths.set(key, found);
  return found;
}
