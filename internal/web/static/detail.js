// The panel at the side: a task with its diff, the conversation of a member, or what was spent. The address of the page
// says which, so that the way back of the browser leads back.
import { ago, arrange, ask, byId, clean, day, el, followEnd, pieces, setText, word } from "./page.js";
import { labelName } from "./board.js";
import { markdown } from "./markdown.js";
import * as replay from "./replay.js";
import { spending } from "./spending.js";

const mostRows = 4000; // of a diff at once
const body = byId("detail-body");
export const end = followEnd(body);
let getState, listen, drawNeed, shown = {}, before;

// open follows the address of the page. listen asks for the words of a member while they stream in, and need draws what
// waits for the user.
export function open(state, listenTo, need) {
  [getState, listen, drawNeed] = [state, listenTo, need];
  addEventListener("hashchange", show);
  byId("detail-close").addEventListener("click", close);
  byId("mail").addEventListener("submit", send);
  show();
}

// mayChange says whether the page can do all that there is. A replay changes nothing, and a phone answers only.
const mayChange = () => !getState()?.is_replay && !getState()?.is_phone;
// mayWrite says whether the page can send mail to a member. A phone writes to the lead only.
const mayWrite = (name) => !getState()?.is_replay && (!getState()?.is_phone || name === "lead");

// close closes what is open, and reports whether anything was.
export function close() {
  if (byId("detail").hidden) return false;
  history.replaceState(null, "", location.pathname);
  show();
  return true;
}

// show opens what the address names.
function show() {
  const [kind, name, field] = location.hash.slice(1).split("/").map(decodeURIComponent);
  const is = ["task", "member", "spending", "inbox"].includes(kind);
  if (is && byId("detail").hidden) before = document.activeElement;
  shown = is ? { kind, name } : {};
  byId("detail").hidden = !is;
  byId("mail").hidden = kind !== "member" || !mayWrite(name);
  byId("steps").hidden = true;
  body.replaceChildren();
  if (kind === "member") end.resume(); else end.rest();
  listen(kind === "member" ? name : "");
  if (!is) {
    // The board may have been drawn again meanwhile.
    const task = before?.isConnected ? "" : before?.dataset?.task;
    (task ? document.querySelector(`.node[data-task="${task}"]`) : before)?.focus?.();
    return;
  }
  setText(byId("detail-title"), { spending: "Spending and contexts", inbox: "Inboxes" }[kind] || `${kind} ${name}`);
  if (kind === "member") setText(byId("mail-label"), `Mail to ${reader(name)}, which it reads before its next step`);
  byId(field === "mail" && !byId("mail").hidden ? "mail-text" : "detail").focus();
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
      const focused = body.contains(document.activeElement) && document.activeElement;
      try { await draw(of); } catch (e) {
        if (of === shown && !body.querySelector(".failure")) body.prepend(el("p", { class: "bad failure" }, e.message));
      }
      if (of !== shown) isStale = true;
      else if (focused && !focused.isConnected && document.activeElement === document.body) {
        // What was drawn anew is the same for the user.
        const same = (e) => e.tagName === focused.tagName && e.ariaLabel === focused.ariaLabel && (e.ariaLabel || e.textContent === focused.textContent);
        ([...body.querySelectorAll("button, a, summary, [tabindex]")].find(same) || body).focus();
      }
    }
  } finally { isReading = false; }
}

async function draw(of) {
  if (of.kind === "spending") await drawSpending(of);
  if (of.kind === "inbox") await drawInbox(of);
  if (of.kind === "task") await drawTask(of);
  if (of.kind === "member") await drawMember(of);
}

// drawTask shows a task. It is drawn again only when it has changed and no comment is being written.
async function drawTask(of) {
  const d = await ask("api/task/" + encodeURIComponent(of.name));
  const card = getState()?.tasks.find((c) => c.id === d.task.id);
  const needs = (getState()?.needs || []).filter((n) => (n.task?.id || n.request?.task_id) === d.task.id);
  const key = JSON.stringify([d, card, needs.map((n) => n.name), replay.isOn()]);
  if (of !== shown || of.key === key || body.querySelector(".diff form") || body.querySelector(".need textarea")?.value) return;
  of.key = key;
  const t = d.task, at = body.scrollTop;
  setText(byId("detail-title"), `${t.id} ${t.subject}`);
  const facts = el("dl");
  const fact = (name, ...value) => { if (value.some(Boolean)) facts.append(el("dt", {}, name), el("dd", {}, ...value)); };
  const links = (ids) => (ids || []).flatMap((id, i) => [i ? ", " : "", el("a", { href: "#task/" + id }, String(id))]);
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
  if (t.description) parts.push(el("div", { class: "text-box" }, markdown(t.description)));
  parts.push(...needs.map(drawNeed));
  for (const q of d.requests.filter((q) => !needs.some((n) => n.request?.request_id === q.request_id))) {
    const answer = q.resolved_by ? `, ${word("requests", q.status)} by ${q.resolved_by}${q.response ? ": " + q.response : ""}` : ", waits for an answer";
    parts.push(el("h3", {}, `${["shutdown", "permission"].includes(q.kind) ? q.kind : "plan"} of ${q.from}${answer}`));
    if (q.plan) parts.push(el("div", { class: "text-box" }, markdown(q.plan)));
  }
  if (t.sides) parts.push(el("h3", {}, "Both sides"), el("pre", { class: "text-box", tabindex: 0, role: "group", "aria-label": "Both sides" }, t.sides));
  parts.push(el("h3", {}, "Diff"));
  if (d.diff && d.diff.files?.length) {
    if (mayChange()) parts.push(el("p", { class: "faint" }, "The number of a line opens a comment on it, which goes to " + (t.owner && !t.landed ? t.owner : "the lead") + "."));
    parts.push(diff(t, d.diff));
    if (d.is_cut) parts.push(el("p", { class: "faint" }, `the rest is left out: muster diff ${t.id}`));
  } else parts.push(el("p", { class: "faint" }, d.no_diff || "nothing is changed"));
  body.replaceChildren(...parts);
  body.scrollTop = at;
}

// diff shows a diff by files, with the numbers of the lines before and after. The server has read it.
function diff(task, d) {
  const box = el("div", { class: "diff", tabindex: 0, "aria-label": "Diff" }), { lines } = d;
  let file = -1, at = 0;
  const said = (c, ...head) => el("p", { class: "comment" }, ...head, el("strong", {}, `you to ${c.to}: `), c.text);
  const comments = Map.groupBy(d.comments || [], (c) => c.row);
  for (const c of comments.get(-1) || []) box.append(said(c, `${c.file}:${c.line}: `, el("code", {}, c.quoted), el("br")));
  const add = (limit) => {
    const part = document.createDocumentFragment();
    for (; at < lines.length && at < limit; part.append(...(comments.get(at) || []).map((c) => said(c))), at++) {
      const l = lines[at];
      if (l.kind === "file") {
        const f = d.files[++file];
        part.append(el("h4", {}, `${f?.file || "?"}  +${f?.added ?? 0} -${f?.deleted ?? 0}`));
      } else if (l.kind !== "meta" || !/^(index|---|\+\+\+) /.test(l.text)) part.append(row(l, mayChange() ? task : undefined, d.files[file]?.file || "?"));
    }
    box.append(part);
    if (at >= lines.length) return;
    const more = el("button", { type: "button" }, `${lines.length - at} more lines`);
    more.addEventListener("click", () => { more.remove(); add(at + mostRows); });
    box.append(more);
  };
  add(mostRows);
  return box;
}

const signs = { added: "+", removed: "-", context: " ", gap: "⋯ " }, classes = { added: "plus", removed: "minus", context: "", file: "file", gap: "faint" };

// row is a line of a diff. One that is in the new file can be commented on.
function row(l, task, file) {
  const r = el("div", { class: "row " + (classes[l.kind] ?? "hunk") }, el("span", {}, String(l.old || "")));
  if (!task || !l.new) r.append(el("span", {}, String(l.new || "")));
  else {
    const b = el("button", { type: "button", "aria-label": `Comment on line ${l.new} of ${clean(file)}` }, String(l.new));
    b.addEventListener("click", () => comment(r, b, task, file, l.new));
    r.append(b);
  }
  r.append(el("span", {}, signs[l.kind], ...pieces(l.text, l.parts)));
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
      await ask("api/comment", { task: task.id, file, line, text: text.value });
      button.focus();
      form.remove();
      changed(); // the mail is there, and is drawn with the diff
    } catch (e) {
      setText(note, e.message);
      submit.disabled = false;
    }
  });
  r.after(form);
  text.focus();
}

// drawMember shows a conversation, and adds what is new to it. In the past it ends at the time that is shown.
async function drawMember(of) {
  const m = getState()?.members.find((x) => x.name === of.name);
  if (m) setText(byId("detail-title"), `${m.name}: ${m.does || m.look}`);
  else if (getState() && reader(of.name) !== of.name) setText(byId("detail-title"), `${of.name}: has ended`);
  byId("mail").hidden = !mayWrite(of.name);
  const until = replay.isOn() ? replay.time() : undefined;
  if (until !== of.until) {
    Object.assign(of, { until, next: undefined, calls: {} });
    steps([]);
  }
  for (let more = true; more;) {
    const c = await ask(`api/member/${encodeURIComponent(of.name)}?after=${of.next || 0}`);
    if (of !== shown) return;
    const isFirst = of.next === undefined;
    of.next = c.next;
    if (isFirst) body.replaceChildren();
    if (c.skipped) body.append(el("p", { class: "faint" }, `${c.skipped} earlier entries are left out`));
    if (c.steps) steps(c.steps);
    const all = until ? c.said.filter((s) => s.at <= until) : c.said;
    if (isFirst && !all.length) body.append(el("p", { class: "faint nothing" }, "it has said nothing yet"));
    else if (all.length) body.querySelector(".nothing")?.remove();
    if (all.length) { // the words are in what was read
      if (all.some((s) => s.kind === "think")) of.thinking ||= spoken.seconds;
      byId("words")?.remove();
      spoken = {};
    }
    for (const s of all) add(of, s);
    if (isFirst) end.resume();
    else end.show();
    more = c.more && !until;
  }
}

// add adds one thing of a conversation. A call of a tool is one line that opens: what it has answered is within. What it
// changes stands below.
function add(of, s) {
  const calls = of.calls ||= {}; // that have no answer yet, by their ids
  if (s.kind === "call") {
    const files = s.edit?.lines.filter((l) => l.kind === "file").map((l) => l.text).join(", ");
    const line = el("details", { class: "said call" }, el("summary", {}, el("span", { class: "tool" }, s.tool), " " + (s.text || files || ""),
      s.edit && el("span", { class: "counts" }, ...counts(s.edit)), el("span", { class: "outcome" }, " ...")));
    calls[s.call] = line;
    body.append(line);
    if (s.edit?.lines.length) body.append(edited(s.edit));
  } else if (s.kind === "result") {
    const call = calls[s.call], first = s.text.split("\n", 1)[0];
    delete calls[s.call];
    const line = call || el("details", { class: "said call" }, el("summary", {}, el("span", { class: "outcome" })));
    setText(line.querySelector(".outcome"), s.is_error ? "  failed: " + first : "");
    line.classList.toggle("failed", Boolean(s.is_error));
    // What a call has not changed is seen only by who opens it.
    if (s.is_error) {
      line.querySelector(".counts")?.remove();
      if (line.nextSibling?.matches?.(".edit")) line.append(line.nextSibling);
    }
    line.append(el("pre", { tabindex: 0 }, s.text));
    if (!call) body.append(line);
    if (s.steps) steps(s.steps);
  } else if (s.kind === "think") {
    body.append(el("details", { class: "said think" }, el("summary", {}, thought(of.thinking)), el("div", {}, s.text)));
    delete of.thinking; // the time of this one
  } else {
    const text = s.kind === "text" ? markdown(s.text) : s.text;
    body.append(el("div", { class: "said " + s.kind, title: day(s.at) }, text));
  }
}

// counts says how many lines an edit adds and removes.
const counts = (e) => [e.added || !e.removed ? el("span", { class: "good" }, " +" + e.added) : "", e.removed ? el("span", { class: "bad" }, " -" + e.removed) : ""];

// edited shows what a call changes, the old text before the new: the first lines, and all by a click.
function edited(e) {
  const hasNumbers = e.lines.some((l) => l.old || l.new);
  const rows = (lines) => lines.map((l) => el("div", { class: classes[l.kind] }, hasNumbers && signs[l.kind] && l.kind !== "gap" && el("span", { class: "numbers" }, String(l.new || l.old || "")),
    signs[l.kind], ...pieces(l.text, l.parts)));
  const box = el("div", { class: "edit", tabindex: 0, role: "group", "aria-label": "What it changes" }, ...rows(e.preview));
  const all = e.lines.length + (e.more || 0);
  if (all > e.preview.length) {
    const more = el("button", { type: "button", "aria-expanded": "false" }, `all ${all} lines`);
    more.addEventListener("click", () => {
      const isOpen = more.getAttribute("aria-expanded") === "true";
      box.replaceChildren(...rows(isOpen ? e.preview : e.lines), ...(!isOpen && e.more ? [el("div", { class: "faint" }, `⋯ ${e.more} more lines`)] : []), more);
      more.setAttribute("aria-expanded", !isOpen);
      setText(more, isOpen ? `all ${all} lines` : "fewer lines");
      more.focus();
    });
    box.append(more);
  }
  return box;
}

// thought says for how long a member has thought, where it was seen to.
const thought = (seconds) => "thought" + (seconds ? ` for ${seconds < 60 ? Math.round(seconds) + " s" : ago(seconds)}` : "");

// steps shows the member's own list of steps, as it was taken last.
function steps(all) {
  const marks = { pending: ["☐", "to do"], in_progress: ["▸", "at it"], completed: ["☑", "done"] };
  const done = all.filter((t) => t.status === "completed").length, box = byId("steps"), isOpen = box.querySelector("details")?.open;
  box.hidden = !all.length;
  box.replaceChildren(el("details", { open: isOpen }, el("summary", {}, `Steps: ${done} of ${all.length} done`),
    el("ul", { class: "list" }, ...all.map((t) => el("li", { class: t.status === "completed" ? "faint" : "" },
      el("span", { role: "img", "aria-label": marks[t.status][1] }, marks[t.status][0]), " " + t.text)))));
}

// hear shows what a member says while it streams in, below what it has said. It is drawn once for each picture.
let spoken = {}, isDue = false;
export function hear(name, pieces) {
  if (shown.kind !== "member" || shown.name !== name || replay.isOn()) return;
  for (const p of pieces) {
    if (p.kind === "again" || (["text", "think"].includes(p.kind) && spoken.ended)) spoken = {};
    if (p.kind === "think") {
      if (!spoken.since) delete shown.thinking; // that of an earlier reply
      spoken.since ||= performance.now();
      spoken.thinking = ((spoken.thinking || "") + p.text).slice(-20000);
    }
    if (spoken.since && ["text", "end"].includes(p.kind)) spoken.seconds ||= Math.max(1, (performance.now() - spoken.since) / 1000);
    if (p.kind === "end") {
      shown.thinking = spoken.seconds;
      Object.assign(spoken, { ended: true, progress: "" });
      changed(); // the transcript has it now
    }
    if (p.kind === "progress") spoken.progress = p.text;
    if (p.kind === "text") {
      if (spoken.text && p.part !== spoken.part) spoken.text += "\n\n";
      spoken.part = p.part;
      spoken.text = ((spoken.text || "") + p.text).slice(-20000);
    }
  }
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    let box = byId("words");
    if (!spoken.text && !spoken.progress && !spoken.thinking) { box?.remove(); return; }
    if (!box) box = el("div", { id: "words", class: "said text", "aria-live": "off" });
    // The thinking is open until words follow, and then as its reader has it.
    let thinks = box.querySelector(".think");
    if (!spoken.thinking) thinks = undefined;
    else if (!thinks) thinks = el("details", { class: "said think", open: true }, el("summary"), el("div"));
    if (thinks) {
      setText(thinks.firstChild, spoken.seconds ? thought(spoken.seconds) : "thinking ...");
      setText(thinks.lastChild, spoken.thinking);
      if (spoken.seconds && !thinks.dataset.folded) thinks.open = !(thinks.dataset.folded = "yes");
    }
    arrange(box, thinks ? [thinks] : []);
    box.append(markdown(spoken.text || ""), ...(spoken.progress ? [el("pre", {}, spoken.progress)] : []));
    body.append(box);
    end.show();
  });
}

// drawInbox lists the mail of the user and of the lead, what waits first.
async function drawInbox(of) {
  const all = await ask("api/inbox"), key = JSON.stringify(all);
  if (of !== shown || of.key === key) return;
  of.key = key;
  const names = (getState()?.members || []).map((m) => m.name);
  const mail = (m) => el("article", { class: "mail" }, el("p", { class: "faint" }, el("strong", {}, m.from), `  ${word("mails", m.type) && word("mails", m.type) + "  "}${day(m.timestamp)}`,
    ...(m.task_id ? ["  ", el("a", { href: "#task/" + m.task_id }, "task " + m.task_id)] : [])), markdown(m.content || m.plan || ""),
    m.to === "user" && names.includes(m.from) && mayWrite(m.from) && el("a", { href: `#member/${encodeURIComponent(m.from)}/mail`, class: "button item" }, "Answer " + (m.from === "lead" ? "the lead" : m.from)));
  const parts = [];
  for (const box of all) {
    const isYours = box.name === "user";
    parts.push(el("h3", {}, isYours ? "Yours" : "The lead's"));
    parts.push(...box.waiting.map(mail));
    if (!box.waiting.length) parts.push(el("p", { class: "faint" }, "nothing waits"));
    if (isYours && box.waiting.length && mayChange()) {
      const take = el("button", { type: "button", class: "item" }, "Mark as read"), note = el("p", { class: "bad", role: "status" });
      take.addEventListener("click", async () => {
        try { await ask("api/take", { shown: box.waiting.map((m) => m.id) }); } catch (e) { setText(note, e.message); }
        changed();
      });
      parts.push(el("div", { class: "bar" }, take, note));
    }
    if (box.read.length) parts.push(el("details", {}, el("summary", {}, `${box.read.length} that were read`), ...box.read.toReversed().map(mail)));
  }
  body.replaceChildren(...parts);
}

// reader returns who reads mail about a member: for a helper, such as alice.explore-1, the member for which it works.
const reader = (name) => name.split(".")[0];

async function send(e) {
  e.preventDefault();
  const text = byId("mail-text"), to = reader(shown.name);
  try {
    await ask("api/mail", { to, text: text.value });
    text.value = "";
    setText(byId("mail-label"), `sent to ${to}`);
  } catch (e) { setText(byId("mail-label"), e.message); }
}

// drawSpending shows what was spent. It is read again when the state has changed, and not more often than seconds pass.
async function drawSpending(of) {
  const s = getState();
  if (!s || of.at > performance.now() - 3000) return;
  of.at = performance.now();
  const at = body.scrollTop;
  await spending(body, s);
  body.scrollTop = at;
}
