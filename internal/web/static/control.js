// What is done with the team as a whole: start it, go on with it, stop it, take its work.
import { ask, byId, setText } from "./page.js";

const said = (text, isBad = false) => {
  setText(byId("control-said"), text);
  byId("control-said").classList.toggle("bad", isBad);
};
let isBusy = false; // one thing at a time
// setBusy marks the buttons, which take no press meanwhile. They are not disabled: that would take the focus away.
const setBusy = (is) => {
  isBusy = is;
  for (const b of document.querySelectorAll("#control button")) b.setAttribute("aria-disabled", String(is));
};

// twice lets a button ask once more: pressed once it says what will happen, and pressed again it does that. asks returns
// the question, or "" where nothing can be done yet.
function twice(id, asks, does, doing) {
  const b = byId(id), name = b.textContent;
  let timer, isArmed = false;
  const calm = () => { clearTimeout(timer); isArmed = false; setText(b, name); };
  const disarm = () => { if (isArmed) { calm(); said(""); } };
  b.addEventListener("blur", disarm);
  b.addEventListener("keydown", (e) => { if (e.repeat) e.preventDefault(); }); // a key that is held is pressed once
  b.addEventListener("click", async (e) => {
    if (isBusy || e.detail > 1) return; // a double click is no answer
    if (!isArmed) {
      const question = asks();
      if (!question) return;
      isArmed = true;
      setText(b, name + ": press again");
      said(question);
      timer = setTimeout(disarm, 10000);
      return;
    }
    calm();
    said(doing);
    setBusy(true);
    const hadFocus = document.activeElement === b;
    try { said((await does()).text); } catch (e) { said(e.message, true); }
    setBusy(false);
    reread(); // no event tells that a process has ended
    // The button may be gone now, and with it the place of who uses the keyboard.
    if (hadFocus && b.offsetParent === null) byId("control-said").focus();
  });
}

// work is what has landed and was not taken yet. It is read when something has landed, and not with each state.
let work = {}, key = "", wasAlive = false, last;
const readWork = () => ask("api/work").catch(() => ({})).then((w) => { work = w; draw(); });

// start takes what reads the state again.
let reread;
export function start(refresh) { reread = refresh; }

// update offers what can be done with the team in a state. undefined is a state of the past.
export function update(s) {
  last = s;
  const now = s && JSON.stringify([s.alive, s.board.landed, s.can.merge]);
  if (now && now !== key) {
    key = now;
    if (s.can.merge && s.board.landed) readWork(); else work = {};
  }
  if (s?.alive && !wasAlive && !isBusy) said(""); // what was said of the stop is over
  wasAlive = Boolean(s?.alive);
  draw();
}

function draw() {
  const can = last?.can || {};
  byId("start").hidden = !can.start;
  byId("resume").hidden = !can.resume;
  byId("stop").hidden = !can.stop;
  byId("merge").hidden = !can.merge || !work.commits;
  setText(byId("goal-label"), can.resume ? "Or go on with this goal too:" : "What do you want done?");
  byId("control").hidden = !last || !(can.start || can.resume || can.stop);
}

const goal = byId("goal-text");
twice("start-team", () => {
  if (goal.value.trim()) return "Begins a team on this goal, in the background. It works on a branch of its own.";
  said("say what you want done", true);
  goal.focus();
}, async () => {
  const answer = await ask("api/start", { goal: goal.value });
  goal.value = "";
  return answer;
}, "starting ...");
twice("resume", () => "Each member goes on where it was, in the background.", () => ask("api/resume", {}), "starting ...");
twice("stop", () => "Each member stops at once; the state is kept.", () => ask("api/stop", {}), "stopping ...");
twice("merge", () => `Takes ${work.commits} ${work.commits === 1 ? "commit" : "commits"} of ${work.target} to ${work.branch}, in your checkout.`,
  async () => { try { return await ask("api/merge", {}); } finally { readWork(); } }, "taking ...");
document.addEventListener("visibilitychange", () => { if (!document.hidden && last?.board.landed) readWork(); });
