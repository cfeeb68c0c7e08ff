// The page of one team: it draws the state, follows the stream of events, and answers what needs the user.
import { ago, arrange, ask, byId, clean, clock, day, el, followEnd, setText, setWords, word } from "./page.js";
import * as board from "./board.js";
import * as control from "./control.js";
import * as detail from "./detail.js";
import { markdown } from "./markdown.js";
import * as replay from "./replay.js";

const mostEvents = 2000; // older ones leave the timeline; muster log has all
let state, present, skew = 0, stream; // state is what is drawn: the present, or a time of the past

// The state is read when the stream says that it has changed, and again only when that answer is there: a slow server
// or a busy team makes the page later, never the server busier.
let isReading = false, isStale = false;
async function refresh() {
  isStale = true;
  if (isReading) return;
  isReading = true;
  const began = performance.now();
  try {
    while (isStale) {
      isStale = false;
      const s = await ask("api/state");
      present = s;
      setWords(s.words);
      skew = Date.now() / 1000 - s.now;
      trouble("");
      // A reading that failed may have ended after the stream was back, and nothing else would take its word back.
      if (stream?.readyState === EventSource.OPEN) lost("");
      if (!replay.isOn()) { state = s; draw(); }
      if (s.is_replay) { // nothing happens that a stream could tell
        byId("landed").checked = true; // at the end it is all there is to see
        await replay.open(true);
        return;
      }
      if (!stream) connect(s.from);
      detail.changed();
      const pause = Math.min(3000, Math.max(250, 3 * (performance.now() - began)));
      if (isStale) await new Promise((done) => setTimeout(done, pause));
    }
  } catch (e) {
    trouble(e.isRefused || stream?.readyState === EventSource.OPEN ? e.message : "");
    if (!e.isRefused) setTimeout(refresh, 2000);
    lost(e.isRefused ? "refused" : "lost");
  } finally { isReading = false; }
}

// connect follows the events. The browser connects again by itself, and says what it had last.
let lastID = 0, first = 0, listensTo = "";
function connect(from) {
  first = from;
  // The words of one member stream in with the events: a browser has few connections for all of its tabs.
  stream = new EventSource(`api/events?after=${lastID || from}&member=${encodeURIComponent(listensTo)}`);
  stream.addEventListener("open", () => lost(""));
  stream.addEventListener("error", () => {
    lost("lost");
    if (stream.readyState === EventSource.CLOSED) { // the server refused: whether for good, the state says
      stream = undefined;
      setTimeout(refresh, 2000);
    }
  });
  stream.addEventListener("changed", refresh);
  stream.addEventListener("words", (m) => detail.hear(listensTo, JSON.parse(m.data)));
  stream.addEventListener("message", (m) => {
    if (Number(m.lastEventId) <= lastID) return;
    lastID = Number(m.lastEventId);
    addEvents(JSON.parse(m.data));
  });
}

// listen asks for the words of a member as they come, and for none where the name is "".
function listen(name) {
  if (name === listensTo) return;
  listensTo = name;
  if (!stream || stream.readyState === EventSource.CLOSED) return;
  stream.close();
  connect(first);
}

function lost(how) {
  const texts = { "": present?.shared_at ? "as of " + day(present.shared_at) : present?.is_replay ? "replay" : present?.alive ? "live" : "connected", lost: "connection lost, trying again ...", refused: "not connected" };
  byId("link").classList.toggle("lost", how !== "");
  byId("link").dataset.how = how;
  setText(byId("link"), texts[how]);
}

function trouble(text) {
  setText(byId("trouble"), text);
  byId("trouble").hidden = !text;
}

// draw shows the state.
let drawn = 0;
function draw() {
  const s = state;
  byId("none").hidden = s.has_team;
  setText(byId("root"), s.root);
  for (const id of ["needs-zone", "members-zone", "board-zone", "events-zone"]) byId(id).hidden = !s.has_team;
  setText(byId("team"), s.has_team ? s.team : "muster");
  setText(byId("goal"), s.run.goal || "");
  byId("goal").title = clean(s.run.goal || "");
  const how = replay.isOn() ? "" : !s.run.started_at ? "no run yet" : s.run.ended_at ? "ended " + ago(s.now - s.run.ended_at) + " ago"
    : s.alive ? "working" : s.can?.resume ? "stopped" : "stopped: muster resume";
  setText(byId("totals"), [how, s.spent].filter(Boolean).join(" · "));
  if (!byId("link").dataset.how) lost("");
  control.update(replay.isOn() ? undefined : s);
  drawNeeds();
  drawMembers();
  const order = ["needs_attention", "landing", "in_progress", "ready", "waiting", "landed", "done"];
  const labels = [...order, ...Object.keys(s.board).filter((l) => !order.includes(l))].filter((l) => s.board[l]);
  const counts = labels.map((l) => `${s.board[l]} ${board.labelName(l)}`);
  const collisions = s.collisions.length ? [`${s.collisions.length} will collide`] : [];
  setText(byId("counts"), [...counts, ...collisions, s.unreadable ? s.unreadable + " unreadable" : ""].filter(Boolean).join(", "));
  board.update(s.tasks);
  if (!drawn++) performance.mark("board"); // for who measures how long the page takes
}

// drawNeeds keeps the elements of what still waits, so that a text that is being written and the focus stay.
let told = "";
function drawNeeds() {
  const zone = byId("needs"), old = new Map([...zone.children].map((c) => [c.dataset.name, c]));
  const now = state.needs.map((n) => {
    const kept = old.get(n.name);
    if (!kept) return need(n);
    if (!n.request) setText(kept.querySelector("strong"), title(n)); // that of a request counts on by itself
    return kept;
  });
  // One that was answered here says so until the user leaves it.
  for (const [name, e] of old) if (e.dataset.done && !state.needs.some((n) => n.name === name)) now.splice([...zone.children].indexOf(e), 0, e);
  if (!now.length) now.push(old.get("") || el("p", { "data-name": "" }, "nothing"));
  const hadFocus = zone.contains(document.activeElement);
  arrange(zone, now);
  // What had the focus has gone: the next of what waits takes it, and its buttons only with a key.
  if (hadFocus && !zone.contains(document.activeElement)) (zone.querySelector(".need:not(.answered)") || byId("needs-title")).focus();
  const n = state.needs.length;
  document.title = (n ? `(${n}) ` : "") + (state.has_team ? state.team + " - muster" : "muster");
  setText(byId("needs-title"), n ? `Needs you (${n})` : "Needs you");
  const words = state.needs.map((x) => x.name).join() && `${n} ${n === 1 ? "thing needs" : "things need"} you: ` + state.needs.map(title).join("; ");
  if (words !== told && !replay.isOn()) setText(byId("said"), told = words);
}

// title says what waits for the user. How long a request waits is left out, because that changes every second.
const title = (n) => n.request ? n.what.replace(/, waits [^,]*$/, "") : n.member ? `${n.member} ${n.what}` : n.what;

// need shows one thing that waits for the user, with the whole plan and what to do.
function need(n) {
  const kind = n.task ? "task" : n.member ? "model" : n.name === "budget" ? n.name : "";
  const box = el("article", { class: "need", "data-name": n.name, tabindex: -1 }, kind && el("p", { class: "kind" }, kind),
    el("strong", { "data-text": title(n), "data-since": n.request?.created_at },
      title(n) + (n.request ? `, waits ${ago(state.now - n.request.created_at)}` : "")));
  if (n.task || n.request?.task_id) {
    const id = n.task?.id || n.request.task_id;
    box.append(el("p", {}, el("a", { href: "#task/" + id }, `task ${id} and its diff`)));
  }
  if (!n.request) {
    if (n.task?.result && !n.what.includes(n.task.result)) box.append(el("p", {}, n.task.result));
    if (replay.isOn()) return box; // what needed somebody then is over
    if (n.task && !state.is_phone) box.append(act("Try it again", () => ask("api/retry", { task: n.task.id })));
    else if (n.name === "mail") box.append(el("div", { class: "bar" }, el("a", { href: "#inbox", class: "button item" }, "Read it")));
    else if (n.member) box.append(el("div", { class: "bar" }, el("a", { href: "#member/" + encodeURIComponent(n.member), class: "button item" }, "Look at " + n.member)));
    else box.append(el("p", { class: "faint" }, "in a shell: ", el("code", {}, n.command)));
    return box;
  }
  const q = n.request;
  // A command is no Markdown: a star in it is one.
  if (q.kind === "permission" && q.plan) box.append(el("pre", { class: "text-box", tabindex: 0, role: "group", "aria-label": "The command" }, q.plan));
  else if (q.plan || q.reason) box.append(el("div", { class: "text-box", tabindex: 0, role: "group", "aria-label": q.plan ? "The plan" : "The reason" }, markdown(q.plan || q.reason)));
  if (q.change) box.append(el("pre", { class: "text-box", tabindex: 0, role: "group", "aria-label": "The change" }, q.change));
  if (replay.isOn()) return box;
  const text = el("textarea", { rows: 1, placeholder: "a comment; for a no, the reason", "aria-label": `Comment on the request of ${q.from}` });
  const note = el("p", { role: "status" });
  const yes = el("button", { type: "button", class: "yes item" }, "Approve");
  const no = el("button", { type: "button", class: "no" }, "Reject");
  text.addEventListener("input", () => setText(yes, text.value.trim() ? "Approve with comment" : "Approve"));
  // What a permission asks for can be allowed for longer than this once.
  const longer = (q.asks || []).length && !state.is_phone ? [["run", "For this run", "until the run ends"], ["always", "For good", "in this repository, until you revoke it"]]
    .map(([scope, name, title]) => {
      const b = el("button", { type: "button", title: "Approve it " + title }, name);
      b.addEventListener("click", () => answer(true, scope));
      return b;
    }) : [];
  const buttons = [yes, ...longer, no];
  const answer = async (approve, scope = "") => {
    if (!approve && !text.value.trim()) {
      setText(note, "say why, so that something can be done about it");
      text.focus();
      return;
    }
    const back = leave(box);
    for (const b of buttons) b.disabled = true;
    box.dataset.done = "yes"; // the event of the answer may come before the answer itself
    try {
      const d = await ask("api/answer", { id: q.request_id, approve, scope, text: text.value.trim() });
      setText(note, (d.first ? "You: " : `Answered before by ${d.request.resolved_by || "somebody else"}: `)
        + word("requests", d.request.status) + ({ run: " for this run", always: " for good" }[d.request.scope] || "") + (d.request.response ? `, "${d.request.response}"` : ""));
      text.remove();
      for (const b of buttons) b.remove();
      box.classList.add("answered");
      setTimeout(() => { delete box.dataset.done; if (state) drawNeeds(); }, 8000);
    } catch (e) {
      delete box.dataset.done;
      setText(note, e.message);
      for (const b of buttons) b.disabled = false;
      back();
    }
  };
  yes.addEventListener("click", () => answer(true));
  no.addEventListener("click", () => answer(false));
  box.append(text, el("div", { class: "bar" }, ...buttons), note);
  return box;
}

// leave takes the focus from the buttons of a box before they go, and keeps it at the box. It returns what gives it back.
function leave(box) {
  const was = document.activeElement;
  if (!box?.contains(was)) return () => {};
  box.focus();
  return () => { if (document.activeElement === box) was.focus(); };
}

// act is a button that does one thing, and says what is wrong where it fails.
function act(name, what) {
  const b = el("button", { type: "button", class: "item" }, name), note = el("p", { role: "status", class: "bad" });
  b.addEventListener("click", async () => {
    const back = leave(b.closest(".need"));
    b.disabled = true;
    try { await what(); } catch (e) { setText(note, e.message); b.disabled = false; back(); }
  });
  return el("div", { class: "bar" }, b, note);
}

// drawMembers shows the members. Each look has a mark and words of its own beside its colour.
const marks = { working: "●", landing: "▲", "needs you": "?", waiting: "…", idle: "○", stopped: "–", dead: "✕" };
function drawMembers() {
  const list = byId("members"), old = new Map([...list.children].map((c) => [c.dataset.name, c]));
  const now = state.members.map((m) => {
    let item = old.get(m.name);
    if (!item) {
      const b = el("button", { type: "button", class: "member item" }, el("span", { class: "mark", "aria-hidden": "true" }),
        el("span", { class: "name" }), el("span", { class: "figures" }), el("span", { class: "does" }));
      b.addEventListener("click", () => { location.hash = "member/" + m.name; });
      item = el("li", { "data-name": m.name }, b);
    }
    const b = item.firstChild, [mark, name, figures, does] = b.children;
    b.className = (m.works_for ? "member helper item " : "member item ") + m.look.replace(" ", "-");
    setText(mark, marks[m.look]);
    const role = m.role && m.role !== m.name && !m.works_for ? m.role : "";
    if (name.dataset.of !== m.name + role) {
      name.dataset.of = m.name + role;
      name.replaceChildren(clean(m.label), ...(role ? [el("span", { class: "role" }, " " + role)] : []));
    }
    setText(figures, [m.turns ? m.turns + (m.turns === 1 ? " turn" : " turns") : "", m.cost].filter(Boolean).join(" · "));
    does.dataset.text = m.does || m.look; // it begins with the look
    does.dataset.since = m.since || "";
    b.title = clean(does.dataset.text);
    return item;
  });
  arrange(list, now);
  tick();
}

// tick counts the times on. It changes nothing else, and rests while nobody looks.
function tick() {
  const now = replay.isOn() ? replay.time() : Date.now() / 1000 - skew;
  for (const d of document.querySelectorAll(".does")) {
    setText(d, (d.dataset.since ? `${ago(now - d.dataset.since)} · ` : "") + d.dataset.text);
  }
  for (const d of document.querySelectorAll(".need:not(.answered) > strong[data-since]")) {
    setText(d, `${d.dataset.text}, waits ${ago(now - d.dataset.since)}`);
  }
}
setInterval(() => { if (!document.hidden && state?.alive && !replay.isOn()) tick(); }, 5000);

// addEvents adds to the timeline.
const timeline = byId("events"), end = followEnd(timeline, (follows) => { byId("follow").hidden = follows; });
let lastDay = "", coming = [], isDue = false, kept; // kept is the timeline of the present while the past is shown
const line = (e) => {
  const at = new Date(e.at * 1000), text = el("span", { class: "text " + (e.tone || "") }, e.text);
  if (e.task) text.replaceChildren(el("a", { href: "#task/" + e.task }, e.text));
  return el("li", { class: e.show ? "" : "minor" }, el("time", { datetime: at.toISOString() }, clock(e.at)),
    el("span", { class: "who" }, e.who), el("span", { class: "verb " + (e.tone || "") }, e.verb), text);
};
function addEvents(events) {
  for (const e of events) coming.push(e);
  if (coming.length > 2 * mostEvents) coming = coming.slice(-mostEvents);
  if (isDue) return;
  isDue = true; // all that comes before the next picture is added at once
  (document.hidden ? (f) => setTimeout(f, 500) : requestAnimationFrame)(() => {
    isDue = false;
    const lines = document.createDocumentFragment();
    for (const e of coming.splice(0).slice(-mostEvents)) {
      const today = new Date(e.at * 1000).toLocaleDateString();
      if (today !== lastDay) lines.append(el("li", { class: "day" }, lastDay = today));
      lines.append(line(e));
    }
    if (kept) {
      kept.append(lines);
      while (kept.childNodes.length > mostEvents) kept.firstChild.remove();
      return;
    }
    timeline.append(lines);
    while (timeline.children.length > mostEvents) timeline.firstChild.remove();
    end.show();
  });
}

// The past: members, board, what needed the user and the timeline as they were.
function drawPast(s) {
  state = s;
  if (!kept) {
    kept = document.createDocumentFragment();
    kept.append(...timeline.childNodes);
    byId("needs").replaceChildren(); // those of the present have buttons
  }
  timeline.replaceChildren(...s.events.map(line));
  end.resume();
  draw();
  detail.changed();
}
function drawPresent() {
  if (kept) timeline.replaceChildren(kept);
  kept = undefined;
  end.resume();
  state = present;
  byId("needs").replaceChildren(); // those of the past cannot be answered
  draw();
  detail.changed();
}
replay.start(drawPast, drawPresent);
const openReplay = () => replay.open().catch((e) => trouble(e.message));
byId("replay-open").addEventListener("click", openReplay);

byId("follow").addEventListener("click", () => end.resume());
byId("all-events").addEventListener("change", (e) => { timeline.classList.toggle("everything", e.target.checked); end.show(); });

byId("filter").addEventListener("input", () => board.draw());
byId("landed").addEventListener("change", () => board.draw());
byId("keys-open").addEventListener("click", () => byId("keys").showModal());

// move gives the focus to the next or the previous thing that can be opened.
function move(step) {
  const items = [...document.querySelectorAll(".item")].filter((e) => e.offsetParent !== null);
  const at = items.indexOf(document.activeElement);
  const next = items[at < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, at + step))];
  next?.focus();
}

// nextNeed gives the focus to the next thing that waits for the user, and after the last one to the first.
function nextNeed() {
  const zone = byId("detail").querySelector(".need") ? byId("detail") : byId("needs");
  const all = [...zone.querySelectorAll(".need")].filter((e) => e.querySelector(".item, a"));
  const next = all[(all.findIndex((e) => e.contains(document.activeElement)) + 1) % all.length];
  (next?.querySelector(".item") || next?.querySelector("a"))?.focus();
}

document.addEventListener("keydown", (e) => {
  const isTyping = e.target.matches("input:not([type=checkbox], [type=range]), textarea, select");
  if (e.key === "Enter" && (e.ctrlKey || e.metaKey) && !e.repeat) e.target.form?.querySelector("[type=submit]")?.click();
  if (e.ctrlKey || e.metaKey || e.altKey || byId("keys").open) return;
  if (e.key === "Escape") {
    if (isTyping) {
      e.preventDefault(); // the browser would empty a field of a search
      e.target.blur();
    } else if (!detail.close()) replay.close();
    return;
  }
  if (isTyping) return;
  const keys = {
    j: () => move(1), k: () => move(-1), "/": () => byId("filter").focus(), "?": () => byId("keys").showModal(),
    n: nextNeed, $: () => { location.hash = "spending"; },
    m: () => { location.hash = "inbox"; },
    r: openReplay,
    End: () => (byId("detail").hidden ? end : detail.end).resume(),
  };
  if (e.key === " " && replay.isOn() && !e.target.matches("button, summary, a")) keys[" "] = replay.toggle;
  if (!keys[e.key] || e.key === "End" && e.target.type === "range") return;
  e.preventDefault();
  keys[e.key]();
});

detail.open(() => state, listen, need);
control.start(refresh);
refresh();
