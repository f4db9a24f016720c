"use strict";
// The live view: takes in what the server sends, and sends commands back.

const NOW = part("now");
let position = `${NOW.epoch}.${NOW.version}`;

function take(patch) {
  position = `${NOW.epoch}.${patch.version}`;
  patch.texts.forEach((text, place) => { later("texts")[patch.first_text + place] = text; });
  Object.assign(later("pictures"), patch.pictures);
  Object.assign(later("marks"), patch.marks);
  for (const node of patch.nodes) put(node);
  if (patch.gone.length) DATA.nodes = DATA.nodes.filter(node => !patch.gone.includes(node.id) || !NODES.delete(node.id));
  if (patch.moments.length) {
    const first = patch.moments[0].iteration;
    DATA.timeline = [...DATA.timeline.filter(moment => moment.iteration < first), ...patch.moments];
  }
  for (const [id, html] of Object.entries(patch.html)) written(id, html);
  redraw(new Set(patch.nodes.map(node => node.id)));
  steps.refresh();
  gauge(patch);
}

/** A state anew, in the same object, so that all that hold it see it. */
function put(node) {
  const known = NODES.get(node.id);
  if (known) {
    for (const name of Object.keys(known)) delete known[name];
    Object.assign(known, node);
    return;
  }
  NODES.set(node.id, node);
  DATA.nodes.push(node);
}

/** The parts that the server writes, escaped there; scripts in them do not run. Nothing is done where nothing changed. */
const seenHtml = {};
function written(id, html) {
  if (seenHtml[id] === html) return;
  seenHtml[id] = html;
  const open = opened($(id));
  $(id).replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  reopen($(id), open);
  fold();
}

const named = each => `${each.closest("[id]").id} ${each.querySelector("summary")?.textContent.replace(/\d+/g, "#")}`;
const opened = host => new Map([...host.querySelectorAll("details")].map(each => [named(each), each.open]));
function reopen(host, open) {
  for (const each of host.querySelectorAll("details")) {
    const was = open.get(named(each));
    if (was != null) each.open = was;
  }
}

function redraw(changedIds) {
  items = itemsOf(DATA.nodes);
  said.clear();
  view.items = items;
  const again = item => items.get(item.key) ?? items.get("0");
  [view.selected, view.cursor] = [again(view.selected), again(view.cursor)];
  if (find.field.value.trim()) view.found = new Set(find.keys = matches(items, find.field.value));
  view.draw();
  if (view.fitted) view.fit();
  timeline.refresh();
  const { selected } = view;
  if (!changedIds.has((selected.node ?? selected.at).id)) return;
  const open = opened($("panel")), top = $("panel").scrollTop;
  panelOf(selected.node, selected.at, selected.choice);
  reopen($("panel"), open);
  $("panel").scrollTop = top;
}

const steering = new Steering($("live"), "command", NOW.orders);
const order = (...words) => steering.order(...words);

function gauge(now) {
  const { gauges } = now;
  steering.update(now);
  $("gauges").replaceChildren(...[
    `${gauges.iterations} iterations`, `${gauges.states} states`, `queue ${gauges.queue}`, plural(gauges.workers, "worker"),
    gauges.environments && plural(gauges.environments, "environment"), `${gauges.calls} calls`, `$${gauges.money.toFixed(4)}`, `${gauges.seconds} s`,
  ].filter(Boolean).map(text => make("span", {}, text)));
  connected(true);
}

function connected(yes) {
  const { standing } = steering;
  $("dot").className = `dot ${standing === "ended" ? "" : yes ? "on" : "off"}`;
  const look = NOW.orders || standing === "ended" ? "" : ` (${NOW.why || "this view takes no commands"})`;
  $("state").textContent = yes ? standing + look : "connection lost, trying again";
}

commandsFor = node => (steering.standing === "ended" || !NOW.orders ? null : make("span", { class: "orders" },
  make("button", { type: "button", class: "small", click: () => order("expand", node.id) }, "Expand here"),
  node.parent != null && make("button", { type: "button", class: "small", click: () => order("prune", node.id) }, "Prune here")));

function listen() {
  const source = new EventSource(`events?since=${position}`);
  source.addEventListener("open", () => connected(true));
  source.addEventListener("patch", event => take(JSON.parse(event.data)));
  source.addEventListener("again", () => { source.close(); location.reload(); });
  source.addEventListener("error", () => {
    connected(false);
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 1000);
  });
}

gauge(NOW);
panelOf(view.selected.node, view.selected.at, view.selected.choice);
listen();
