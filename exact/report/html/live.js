"use strict";
// The live view: takes in what the server sends, and sends commands back.

const NOW = part("now");
let sent = "";
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

/** What a person is asked: may a write be sent, may an action be done, or a question of the agent. An answer holds for what is shown. */
function asked(questions, patience) {
  const known = questions.map(each => each.id).join();
  if ($("questions").dataset.known === known) return;
  $("questions").dataset.known = known;
  $("questions").replaceChildren(...questions.map(each => {
    const answer = (name, text = "") => order(name, -1, { question: each.id, text });
    const button = (label, name) => make("button", { type: "button", click: () => answer(name) }, label);
    const late = make("span", { class: "quiet" }, ` Without an answer within ${patience} s ${each.kind === "question" ? "the agent goes on" : "it is refused"}.`);
    if (each.kind === "question") {
      const field = make("input", { "aria-label": "Answer", autocomplete: "off" });
      const send = event => { event.preventDefault(); answer("answer", field.value); };
      return make("form", { class: "question", submit: send }, make("p", {}, make("strong", {}, "The agent asks: "), each.text, late), field, " ", make("button", {}, "Answer"));
    }
    const request = each.kind === "write" && make("p", {}, make("strong", {}, "Send this request? "), make("code", { dir: "auto" }, `${each.method} ${each.url}`));
    const rows = Object.entries(each.fields ?? {}).map(([name, value]) => make("li", { dir: "auto" }, make("b", {}, `${name}: `), value));
    const action = each.text && make("p", {}, make("strong", {}, each.kind === "write" ? "Action: " : "Do this? "), make("code", { dir: "auto" }, each.text));
    return make("div", { class: "question", role: "group", "aria-label": "A person is asked" }, action, request, rows.length > 0 && make("ul", {}, ...rows),
      make("p", {}, button("Allow", "allow"), " ", button("Refuse", "refuse"), late));
  }));
}

/** The actions that the search considers, of which a person may take one as it is or change it. */
function offered(candidates) {
  $("candidates").replaceChildren(...candidates.map(each => make("option", { value: each.action }, each.words)));
  const field = $("next-action");
  if (field.value === (field.dataset.offered ?? "") && document.activeElement !== field) field.value = field.dataset.offered = candidates[0]?.action ?? "";
}

function gauge({ gauges, standing, commands, questions, patience, candidates }) {
  asked(NOW.orders ? questions ?? [] : [], patience);
  offered(candidates ?? []);
  $("gauges").replaceChildren(...[
    `${gauges.iterations} iterations`, `${gauges.states} states`, `queue ${gauges.queue}`, plural(gauges.workers, "worker"),
    gauges.environments && plural(gauges.environments, "environment"), `${gauges.calls} calls`, `$${gauges.money.toFixed(4)}`, `${gauges.seconds} s`,
  ].filter(Boolean).map(text => make("span", {}, text)));
  NOW.standing = standing;
  const ended = standing === "ended" || !NOW.orders;
  $("pause").textContent = standing === "paused" ? "Resume" : "Pause";
  $("handover").hidden = ended;
  for (const id of ["pause", "stop"]) $(id).disabled = ended || (id === "stop" && standing === "stopping");
  NOW.commands = commands;
  replied();
  connected(true);
}

/** What became of the last command. It may be known before the request that sent it is answered. */
function replied() {
  const answered = NOW.commands.find(each => each.id === sent);
  if (answered) $("reply").textContent = answered.refused ? `Refused: ${answered.refused}` : `Done: ${answered.name}`;
}

function connected(yes) {
  $("dot").className = `dot ${NOW.standing === "ended" ? "" : yes ? "on" : "off"}`;
  const look = NOW.orders || NOW.standing === "ended" ? "" : ` (${NOW.why || "this view takes no commands"})`;
  $("state").textContent = yes ? NOW.standing + look : "connection lost, trying again";
}

async function order(name, node = -1, more = {}) {
  $("reply").textContent = `Asked: ${name}`;
  const answer = await fetch("command", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name, node, ...more }) });
  if (!answer.ok) return void ($("reply").textContent = `Refused: ${await answer.text()}`);
  sent = (await answer.json()).id;
  replied();
}

$("pause").addEventListener("click", () => order(NOW.standing === "paused" ? "resume" : "pause"));
$("stop").addEventListener("click", () => order("stop"));
for (const [id, field] of [["act", "next-action"], ["instruct", "new-instruction"]]) {
  $(id).addEventListener("submit", event => { event.preventDefault(); order(id, -1, { text: $(field).value }); });
}
$("take").addEventListener("click", () => order("take"));

commandsFor = node => (NOW.standing === "ended" || !NOW.orders ? null : make("span", { class: "orders" },
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
