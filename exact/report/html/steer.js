"use strict";
// What a person may do with a running attempt: pause, stop, answer, give the next action or the instruction, use the browser.

class Steering {
  /** host: element that holds the parts. address: where commands are sent. may: whether this viewer may send any. */
  constructor(host, address, may) {
    Object.assign(this, { host, address, may, sent: "", commands: [], standing: "", known: "" });
    this.part("pause").addEventListener("click", () => this.order(this.standing === "paused" ? "resume" : "pause"));
    this.part("stop").addEventListener("click", () => this.order("stop"));
    this.part("take").addEventListener("click", () => this.order("take"));
    for (const form of host.querySelectorAll("form[data-order]")) {
      form.addEventListener("submit", event => { event.preventDefault(); this.order(form.dataset.order, -1, { text: form.querySelector("input").value }); });
    }
  }

  part(name) { return this.host.querySelector(`[data-part=${name}]`); }

  /** What is known now: standing, questions with the patience for an answer, candidates, and what became of commands. */
  update({ standing, commands, questions, patience, candidates }) {
    Object.assign(this, { standing, commands });
    this.ask(this.may ? questions ?? [] : [], patience);
    this.offer(candidates ?? []);
    const ended = standing === "ended" || !this.may;
    this.part("pause").textContent = standing === "paused" ? "Resume" : "Pause";
    this.part("handover").hidden = ended;
    for (const name of ["pause", "stop"]) this.part(name).disabled = ended || (name === "stop" && standing === "stopping");
    this.replied();
  }

  /** What a person is asked: may a write be sent, may an action be done, or a question of the agent. An answer holds for what is shown. */
  ask(questions, patience) {
    const known = questions.map(each => each.id).join(), host = this.part("questions");
    if (host.dataset.known === known) return;
    host.dataset.known = known;
    host.replaceChildren(...questions.map(each => this.question(each, patience)));
  }

  question(each, patience) {
    const answer = (name, text = "") => this.order(name, -1, { question: each.id, text });
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
  }

  /** The actions that the search considers, of which a person may take one as it is or change it. */
  offer(candidates) {
    this.part("candidates").replaceChildren(...candidates.map(each => make("option", { value: each.action }, each.words)));
    const field = this.part("next");
    if (field.value === (field.dataset.offered ?? "") && document.activeElement !== field) field.value = field.dataset.offered = candidates[0]?.action ?? "";
  }

  /** What became of the last command. It may be known before the request that sent it is answered. */
  replied() {
    const answered = this.commands.find(each => each.id === this.sent);
    if (answered) this.part("reply").textContent = answered.refused ? `Refused: ${answered.refused}` : `Done: ${answered.name}`;
  }

  async order(name, node = -1, more = {}) {
    this.part("reply").textContent = `Asked: ${name}`;
    const answer = await fetch(this.address, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name, node, ...more }) });
    if (!answer.ok) return void (this.part("reply").textContent = `Refused: ${await answer.text()}`);
    this.sent = (await answer.json()).id;
    this.replied();
  }
}
