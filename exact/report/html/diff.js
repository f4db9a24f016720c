"use strict";
// What changed between two texts, line by line.

/** Runs of lines: [sign, text] with sign " ", "-" or "+". Of long middles only lines of one side are listed. */
function changes(before, after) {
  const one = before.split("\n"), two = after.split("\n");
  let head = 0, tail = 0;
  while (head < one.length && head < two.length && one[head] === two[head]) head += 1;
  while (tail < one.length - head && tail < two.length - head && one[one.length - 1 - tail] === two[two.length - 1 - tail]) tail += 1;
  const a = one.slice(head, one.length - tail), b = two.slice(head, two.length - tail);
  const middle = a.length * b.length > 400_000 ? apart(a, b) : aligned(a, b);
  const same = lines => lines.map(line => [" ", line]);
  return [...same(one.slice(0, head)), ...middle, ...same(one.slice(one.length - tail))];
}

/** By the longest common subsequence. */
function aligned(a, b) {
  const width = b.length + 1, long = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      long[i * width + j] = a[i] === b[j] ? long[(i + 1) * width + j + 1] + 1 : Math.max(long[(i + 1) * width + j], long[i * width + j + 1]);
    }
  }
  const found = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { found.push([" ", a[i]]); i += 1; j += 1; }
    else if (j === b.length || (i < a.length && long[(i + 1) * width + j] >= long[i * width + j + 1])) { found.push(["-", a[i]]); i += 1; }
    else { found.push(["+", b[j]]); j += 1; }
  }
  return found;
}

function apart(a, b) {
  const ones = new Set(a), twos = new Set(b);
  return [...a.filter(line => !twos.has(line)).map(line => ["-", line]), ...b.filter(line => !ones.has(line)).map(line => ["+", line])];
}

/** The changes as elements, with two lines about each; null where there are none. */
function changed(before, after) {
  const all = changes(before, after), near = new Set();
  all.forEach(([sign], at) => { if (sign !== " ") for (let i = at - 2; i <= at + 2; i += 1) near.add(i); });
  if (!near.size) return null;
  const rows = [];
  let gap = false;
  all.forEach(([sign, text], at) => {
    if (near.has(at)) rows.push(make(sign === "+" ? "ins" : sign === "-" ? "del" : "span", { dir: "auto" }, `${sign} ${text}`));
    else if (!gap) rows.push(make("span", { class: "quiet" }, "⋯"));
    gap = !near.has(at);
  });
  const [gone, came] = ["-", "+"].map(sign => all.filter(each => each[0] === sign).length);
  return section(`What changed (${plural(gone, "line")} gone, ${came} new)`, true, make("pre", { class: "diff", tabindex: "0" }, rows));
}
