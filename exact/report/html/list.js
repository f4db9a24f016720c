"use strict";
// The list of attempts: takes in rows as they change, and lets a person steer each running one.

const MAY = part("now").orders;
const host = $("attempts"), rows = new Map(), steerings = new Map(), seen = new Map();
for (const row of host.children) rows.set(row.dataset.key, row);

/** A row anew. The parts by which a person steers it stay, with all that is typed in them. */
function put({ key, html, steer }) {
  const known = rows.get(key);
  if (seen.get(key) !== html) {
    const fresh = new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
    if (!known) rows.set(key, fresh);
    else renew(known, fresh);
    seen.set(key, html);
  }
  const row = rows.get(key), parts = row.querySelector(".steering");
  if (!steer || !parts) return void steerings.delete(key);
  if (steerings.get(key)?.host !== parts) steerings.set(key, new Steering(parts, `/${key.split("/").map(encodeURIComponent).join("/")}/command`, MAY));
  steerings.get(key).update(steer);
}

function renew(row, fresh) {
  const links = told => [...told.querySelectorAll("a")], old = row.querySelector(".told"), told = fresh.querySelector(".told");
  const focused = links(old).indexOf(document.activeElement), [was, is] = [row.querySelector(".steering"), fresh.querySelector(".steering")];
  row.className = fresh.className;
  old.replaceWith(told);
  links(told)[focused]?.focus({ preventScroll: true });
  if (was && !is) was.remove();
  else if (is && !was) row.append(is);
}

/** Puts rows in order, and moves none that stands right: the focus would leave it. */
function arrange(order) {
  for (const [key, row] of rows) if (!order.includes(key)) { row.remove(); for (const known of [rows, steerings, seen]) known.delete(key); }
  const focused = document.activeElement;
  order.forEach((key, place) => { if (host.children[place] !== rows.get(key)) host.insertBefore(rows.get(key), host.children[place] ?? null); });
  if (document.activeElement !== focused) focused.focus({ preventScroll: true });
}

function connected(yes) {
  $("dot").className = `dot ${yes ? "on" : "off"}`;
  $("state").textContent = yes ? "" : "connection lost, trying again";
}

function take({ rows: changed, order, sum }) {
  changed.forEach(put);
  arrange(order);
  if ($("sum").textContent !== sum) $("sum").textContent = sum;
  connected(true);
}

function listen() {
  const source = new EventSource("events");
  source.addEventListener("open", () => connected(true));
  source.addEventListener("rows", event => take(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    connected(false);
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 1000);
  });
}

themed();
listen();
