// The panel at the side: a task with its diff, the conversation of a member, or what was spent. The address of the page
// says which, so that the way back of the browser leads back.
import { ago, ask, byId, clean, el, followEnd, setText } from "./page.js";
import { labelName } from "./board.js";

const mostRows = 4000; // of a diff at once
const body = byId("detail-body");
export const end = followEnd(body);
let getState, shown = {}, before;

// open follows the address of the page.
export function open(state) {
  getState = state;
  addEventListener("hashchange", show);
  byId("detail-close").addEventListener("click", close);
  byId("mail").addEventListener("submit", send);
  show();
}

export function close() {
  if (!location.hash) return;
  history.replaceState(null, "", location.pathname);
  show();
}

// show opens what the address names.
function show() {
  const [kind, name] = decodeURIComponent(location.hash.slice(1)).split("/");
  const is = ["task", "member", "spending"].includes(kind);
  if (is && byId("detail").hidden) before = document.activeElement;
  shown = is ? { kind, name } : {};
  byId("detail").hidden = !is;
  byId("mail").hidden = kind !== "member";
  body.replaceChildren();
  if (!is) {
    before?.focus?.();
    return;
  }
  setText(byId("detail-title"), kind === "spending" ? "Spending" : `${kind} ${name}`);
  if (kind === "member") setText(byId("mail-label"), `Mail to ${name}, which it reads before its next step`);
  byId("detail").focus();
  changed();
}

// changed reads again what is open. One reading is under way at a time, and one more is remembered.
let isReading = false, isStale = false;
export async function changed() {
  isStale = true;
  if (isReading || !shown.kind) return;
  isReading = true;
  try {
    while (isStale) {
      isStale = false;
      const of = shown;
      try { await draw(of); } catch (e) {
        if (of === shown && !body.querySelector(".failure")) body.prepend(el("p", { class: "bad failure" }, e.message));
      }
      if (of !== shown) isStale = true;
    }
  } finally { isReading = false; }
}

async function draw(of) {
  if (of.kind === "spending") drawSpending();
  if (of.kind === "task") await drawTask(of);
  if (of.kind === "member") await drawMember(of);
}

// drawTask shows a task. It is drawn again only when it has changed and no comment is being written.
async function drawTask(of) {
  const d = await ask("api/task/" + encodeURIComponent(of.name));
  const key = JSON.stringify(d);
  if (of !== shown || of.key === key || body.querySelector(".diff form")) return;
  of.key = key;
  const t = d.task, at = body.scrollTop;
  setText(byId("detail-title"), `${t.id} ${t.subject}`);
  const facts = el("dl");
  const fact = (name, ...value) => { if (value.some(Boolean)) facts.append(el("dt", {}, name), el("dd", {}, ...value)); };
  const links = (ids) => (ids || []).flatMap((id, i) => [i ? ", " : "", el("a", { href: "#task/" + id }, String(id))]);
  const card = getState()?.tasks.find((c) => c.id === t.id);
  fact("status", labelName(card?.label || t.status), t.attempts ? `, ${t.attempts} attempts` : "");
  fact("owner", t.owner ? el("a", { href: "#member/" + t.owner }, t.owner) : "");
  fact("waits for", ...links(t.blockedBy));
  fact("after", ...links(t.dependsOn));
  fact("before", ...links(t.blocks));
  fact("lane", t.worktree);
  fact("came back", t.returned);
  fact("result", t.result);
  if (t.landed) fact("landed", `${t.landed.commit.slice(0, 10)}  ${t.landed.receipt || ""}  ${t.landed.check || ""}  ${t.landed.review || ""}`);
  fact("cost", card?.cost);
  const parts = [facts];
  if (t.description) parts.push(el("pre", {}, t.description));
  for (const q of d.requests) {
    const answer = q.resolved_by ? `, ${q.status} by ${q.resolved_by}${q.response ? ": " + q.response : ""}` : ", waits for an answer";
    parts.push(el("h3", {}, `${q.kind === "shutdown" ? "shutdown" : "plan"} of ${q.from}${answer}`));
    if (q.plan) parts.push(el("pre", {}, q.plan));
  }
  parts.push(el("h3", {}, "Diff"));
  if (d.diff && d.diff.files?.length) {
    parts.push(el("p", { class: "faint" }, "The number of a line opens a comment on it, which goes to " + (t.owner && !t.landed ? t.owner : "the lead") + "."));
    parts.push(diff(t, d.diff));
    if (d.is_cut) parts.push(el("p", { class: "faint" }, `the rest is left out: muster diff ${t.id}`));
  } else parts.push(el("p", { class: "faint" }, d.no_diff || "nothing is changed"));
  body.replaceChildren(...parts);
  body.scrollTop = at;
}

// diff shows the text of a diff by files. Their names come from the list beside it, because git quotes odd ones in the
// text. How many lines a hunk has, its head says: a line that looks like a head within one is a line.
function diff(task, d) {
  const box = el("div", { class: "diff", tabindex: 0, "aria-label": "Diff" }), lines = d.diff.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  let file = -1, oldLeft = 0, newLeft = 0, number = 0, rows = 0, at = 0;
  const name = () => d.files[file]?.file || "?";
  const add = (limit) => {
    const part = document.createDocumentFragment();
    for (; at < lines.length && rows < limit; at++, rows++) {
      const line = lines[at], hunk = /^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
      if (oldLeft <= 0 && newLeft <= 0 && line.startsWith("diff --git ")) {
        file++;
        part.append(el("h4", {}, `${name()}  +${d.files[file]?.added ?? 0} -${d.files[file]?.deleted ?? 0}`));
      } else if (oldLeft <= 0 && newLeft <= 0 && hunk) {
        [oldLeft, number, newLeft] = [Number(hunk[1] ?? 1), Number(hunk[2]), Number(hunk[3] ?? 1)];
        part.append(row("hunk", "", line));
      } else if (oldLeft > 0 || newLeft > 0) {
        const sign = line[0];
        if (sign === "\\") { part.append(row("hunk", "", line)); continue; }
        if (sign !== "+") oldLeft--;
        if (sign === "-") { part.append(row("minus", "", line)); continue; }
        newLeft--;
        part.append(row(sign === "+" ? "plus" : "", number++, line, task, name()));
      } else if (!/^(index|---|\+\+\+) /.test(line)) part.append(row("hunk", "", line));
    }
    box.append(part);
    if (at >= lines.length) return;
    const more = el("button", { type: "button" }, `${lines.length - at} more lines`);
    more.addEventListener("click", () => { more.remove(); add(rows + mostRows); });
    box.append(more);
  };
  add(mostRows);
  return box;
}

// row is a line of a diff. One that is in the new file can be commented on.
function row(kind, number, line, task, file) {
  const r = el("div", { class: "row " + kind });
  if (number === "") r.append(el("span"));
  else {
    const b = el("button", { type: "button", "aria-label": `Comment on line ${number} of ${clean(file)}` }, String(number));
    b.addEventListener("click", () => comment(r, b, task, file, number));
    r.append(b);
  }
  r.append(el("span", {}, line));
  return r;
}

// comment opens a box under a line, and closes it when it is there already.
function comment(r, button, task, file, line) {
  if (r.nextSibling?.matches?.("form")) { r.nextSibling.remove(); return; }
  const text = el("textarea", { rows: 3, "aria-label": `Comment on line ${line} of ${clean(file)}` });
  const note = el("p", { role: "status" }), submit = el("button", { type: "submit" }, "Send the comment");
  const cancel = el("button", { type: "button" }, "Cancel");
  const form = el("form", {}, el("p", {}, `${file}:${line}`), text, el("div", { class: "bar" }, submit, cancel), note);
  cancel.addEventListener("click", () => { form.remove(); button.focus(); });
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    submit.disabled = true;
    try {
      const m = await ask("api/comment", { task: task.id, file, line, text: text.value });
      form.replaceWith(el("p", { class: "good", role: "status" }, `sent to ${m.to}: ${text.value}`));
      button.focus();
    } catch (e) {
      setText(note, e.message);
      submit.disabled = false;
    }
  });
  r.after(form);
  text.focus();
}

// drawMember shows a conversation, and adds what is new to it.
async function drawMember(of) {
  const m = getState()?.members.find((x) => x.name === of.name);
  if (m) setText(byId("detail-title"), `${m.name}: ${m.does || m.look}`);
  for (let more = true; more;) {
    const c = await ask(`api/member/${encodeURIComponent(of.name)}?after=${of.next || 0}`);
    if (of !== shown) return;
    const isFirst = of.next === undefined;
    of.next = c.next;
    if (isFirst) body.replaceChildren();
    if (c.skipped) body.append(el("p", { class: "faint" }, `${c.skipped} earlier entries are left out`));
    if (isFirst && !c.said.length) body.append(el("p", { class: "faint nothing" }, "it has said nothing yet"));
    else if (c.said.length) body.querySelector(".nothing")?.remove();
    body.append(...c.said.map(said));
    if (isFirst) end.resume();
    else end.show();
    more = c.more;
  }
}

// said is one thing of a conversation. What a tool has answered is one line that can be opened.
function said(s) {
  if (s.kind === "result") {
    const first = s.text.split("\n", 1)[0];
    return el("details", { class: "said" + (s.is_error ? " failed" : "") }, el("summary", {}, (s.is_error ? "failed: " : "") + first), el("pre", {}, s.text));
  }
  const text = s.kind === "call" ? `${s.tool} ${s.text}` : s.text;
  return el("div", { class: "said " + s.kind, title: new Date(s.at * 1000).toLocaleString() }, text);
}

async function send(e) {
  e.preventDefault();
  const text = byId("mail-text"), to = shown.name;
  try {
    await ask("api/mail", { to, text: text.value });
    text.value = "";
    setText(byId("mail-label"), `sent to ${to}`);
  } catch (e) { setText(byId("mail-label"), e.message); }
}

// drawSpending shows what was spent, by member, by task and by model, the dearest first.
function drawSpending() {
  const s = getState();
  if (!s) return;
  const parts = [el("p", {}, s.spent || "no price is known"), el("p", { class: "faint" },
    s.run.started_at ? `the last run, which began ${ago(s.now - s.run.started_at)} ago` : "no run yet")];
  const subject = (id) => id === "0" ? "no task" : `${id} ${s.tasks.find((t) => String(t.id) === id)?.subject || ""}`;
  for (const [title, sums, name] of [["Member", s.spending.members], ["Task", s.spending.tasks, subject], ["Model", s.spending.models]]) {
    const rows = Object.entries(sums || {}).sort((a, b) => b[1].dollars - a[1].dollars || b[1].calls - a[1].calls);
    if (!rows.length) continue;
    const table = el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, title),
      ...["Calls", "Input", "Cached", "Output", "Dollars"].map((n) => el("th", { scope: "col", class: "figure" }, n)))));
    const lines = el("tbody");
    for (const [key, x] of rows) {
      const dollars = x.calls && x.calls === x.unpriced_calls ? "unknown" : (x.unpriced_calls ? "at least " : "") + Number(x.dollars).toFixed(2);
      const figures = [x.calls, x.input + (x.cache_write || 0) + (x.cache_write_long || 0), x.cache_read, x.output].map((n) => Number(n || 0).toLocaleString());
      lines.append(el("tr", {}, el("td", {}, name ? name(key) : key || "-"), ...[...figures, dollars].map((v) => el("td", { class: "figure" }, v))));
    }
    table.append(lines);
    parts.push(table, el("br"));
  }
  body.replaceChildren(...parts);
}
