// The board: tasks in columns by how deep they wait for others, with lines from each task to those that wait for it.
import { el, clean, byId, word } from "./page.js";

const width = 208, height = 62, gapX = 52, gapY = 10, margin = 14;
const mostInColumn = 60; // more are behind a button: nobody reads a thousand at once
const ranks = { needs_attention: 0, landing: 1, in_progress: 2, ready: 3, waiting: 4, landed: 6, done: 6 };

// labelName is the word of a task's state. The board has room to say what done means.
export const labelName = (label) => label === "done" ? "done without a change" : word("tasks", label);

let tasks = [], expanded = new Set(), last = "";

// update takes the tasks of a new state.
export function update(all) { tasks = all; draw(); }

// matches says whether each word of the filter is in a task.
function matches(task, words) {
  const text = `#${task.id} ${task.subject} ${task.owner || ""} ${task.label} ${labelName(task.label)}`.toLowerCase();
  return words.every((w) => /^#?\d+$/.test(w) ? String(task.id) === w.replace("#", "") : text.includes(w));
}

// depths returns for each task how many of the shown ones it waits for, one behind the other. A circle, which no board
// should have, ends where it began. It needs no recursion, because a chain may be long.
function depths(shown) {
  const depth = new Map();
  for (const first of shown.keys()) {
    const stack = [first], open = new Set();
    while (stack.length) {
      const id = stack[stack.length - 1];
      const on = (shown.get(id).depends_on || []).filter((d) => shown.has(d));
      const missing = open.has(id) ? [] : on.filter((d) => !depth.has(d) && !open.has(d));
      open.add(id);
      if (missing.length) { stack.push(...missing); continue; }
      stack.pop();
      if (!depth.has(id)) depth.set(id, Math.max(0, ...on.map((d) => (depth.get(d) ?? -1) + 1)));
    }
  }
  return depth;
}

// layout returns the columns of tasks. In the first one stands first what needs somebody; in the others a task stands
// beside what it waits for, so that few lines cross.
function layout(shown) {
  const columns = [], rows = new Map();
  for (const [id, d] of depths(shown)) (columns[d] ||= []).push(shown.get(id));
  const beside = (t) => {
    const on = (t.depends_on || []).filter((d) => rows.has(d));
    return on.length ? on.reduce((n, d) => n + rows.get(d), 0) / on.length : 0;
  };
  for (const c of columns) {
    const places = new Map(c.map((t) => [t.id, beside(t)]));
    c.sort((a, b) => places.get(a.id) - places.get(b.id) || (ranks[a.label] ?? 5) - (ranks[b.label] ?? 5) || a.id - b.id);
    c.forEach((t, i) => rows.set(t.id, i));
  }
  return columns;
}

export function draw() {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const isOver = (t) => t.label === "landed" || t.label === "done";
  const isAllOver = tasks.every(isOver); // then what has landed is all that there is to see
  const found = tasks.filter((t) => words.length ? matches(t, words) : byId("landed").checked || isAllOver || !isOver(t));
  // What would look the same is not drawn again: the focus and the place of the reader stay.
  const key = JSON.stringify([found.map((t) => [t.id, t.subject, t.label, t.owner, t.depends_on, t.returned]), [...expanded], tasks.length]);
  if (key === last) return;
  last = key;
  const focused = document.activeElement?.dataset?.task;
  const columns = layout(new Map(found.map((t) => [t.id, t])));
  const places = new Map(), nodes = document.createDocumentFragment();
  let bottom = 0;
  columns.forEach((column, x) => {
    const left = margin + x * (width + gapX);
    const shown = expanded.has(x) ? column : column.slice(0, mostInColumn);
    shown.forEach((task, y) => {
      const top = margin + y * (height + gapY);
      places.set(task.id, [left, top]);
      nodes.append(node(task, left, top));
    });
    let rows = shown.length;
    if (column.length > rows) {
      const more = el("button", { class: "more", type: "button" }, `${column.length - rows} more`);
      more.style.left = left + "px";
      more.style.top = margin + rows * (height + gapY) + "px";
      more.addEventListener("click", () => { expanded.add(x); draw(); });
      nodes.append(more);
      rows++;
    }
    bottom = Math.max(bottom, margin + rows * (height + gapY));
  });
  const right = margin + columns.length * (width + gapX);
  if (!found.length) nodes.append(el("p", {}, words.length ? "no task matches the filter" : "no tasks yet"));
  byId("nodes").replaceChildren(nodes);
  byId("nodes").style.cssText = `position:relative;width:${right}px;height:${bottom}px`;
  edges(found, places, right, bottom);
  if (focused) document.querySelector(`.node[data-task="${focused}"]`)?.focus({ preventScroll: true });
}

// node is a task as a button that opens it.
function node(task, left, top) {
  const state = task.returned && task.owner && task.label === "in_progress" ? `came back to ${task.owner}` : [labelName(task.label), task.owner, task.commit && task.commit.slice(0, 7),
    task.label === "waiting" && "for " + task.blockedBy.join(", "), task.returned && "came back"].filter(Boolean).join(" · ");
  const b = el("button", { class: "node item " + task.label.replace(/\W/g, ""), type: "button", "data-task": task.id },
    el("span", { class: "subject" }, el("span", { class: "number" }, task.id + " "), task.subject), el("span", { class: "state" }, state));
  b.title = clean(`${task.id} ${task.subject}\n${state}${task.returned ? "\n" + task.returned : ""}`);
  b.style.left = left + "px";
  b.style.top = top + "px";
  return b;
}

// One listener serves all tasks: a thousand times five of them would take longer than to draw the tasks.
const at = (e) => e.target.closest?.(".node")?.dataset.task;
byId("nodes").addEventListener("click", (e) => { if (at(e)) location.hash = "task/" + at(e); });
for (const [event, lit] of [["focusin", true], ["pointerover", true], ["focusout", false], ["pointerout", false]]) {
  byId("nodes").addEventListener(event, (e) => {
    if (!at(e)) return;
    for (const p of document.querySelectorAll(`#edges path[data-of~="${at(e)}"]`)) p.classList.toggle("lit", lit);
  });
}

// edges draws the lines from tasks to those that wait for them.
function edges(shown, places, right, bottom) {
  const svg = byId("edges"), ns = "http://www.w3.org/2000/svg", lines = document.createDocumentFragment();
  svg.setAttribute("width", right);
  svg.setAttribute("height", bottom);
  for (const task of shown) {
    const to = places.get(task.id);
    for (const id of task.depends_on || []) {
      const from = places.get(id);
      if (!from || !to) continue;
      const x1 = from[0] + width, y1 = from[1] + height / 2, x2 = to[0], y2 = to[1] + height / 2, bend = gapX * 0.6;
      const p = document.createElementNS(ns, "path");
      const curve = (xa, ya, xb, yb) => `C${xa + bend} ${ya} ${xb - bend} ${yb} ${xb} ${yb}`;
      // Past the columns between, a line runs in the gap between two rows, so that it touches no task.
      const gap = y1 - (y2 < y1 ? 1 : -1) * (height + gapY) / 2, isFar = x2 - x1 > gapX;
      p.setAttribute("d", `M${x1} ${y1}` + (isFar ? curve(x1, y1, x1 + gapX, gap) + `H${x2 - gapX}` + curve(x2 - gapX, gap, x2, y2) : curve(x1, y1, x2, y2)));
      p.setAttribute("data-of", `${id} ${task.id}`);
      lines.append(p);
    }
  }
  svg.replaceChildren(lines);
}
