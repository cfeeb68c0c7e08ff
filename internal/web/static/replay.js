// Replay: the page as it was at a time of the run. The server derives it from the journal (api/past); the page shows
// one time at once, and asks for the next one when the answer is there.
import { ask, byId, clock, setText } from "./page.js";

let range, at = 0, timer, speed = 60, isReading = false, wanted, show, leave;

// isOn says whether the page shows the past.
export const isOn = () => !byId("replay").hidden;
// time is the time that is shown, in Unix seconds.
export const time = () => at;

// start takes what draws a state of the past, and what draws the present again.
export function start(draw, back) {
  show = draw;
  leave = back;
  byId("replay-at").addEventListener("input", (e) => { pause(); go(range.from + Number(e.target.value)); });
  byId("replay-play").addEventListener("click", toggle);
  byId("replay-back").addEventListener("click", () => step(-1));
  byId("replay-next").addEventListener("click", () => step(1));
  byId("replay-speed").addEventListener("change", (e) => { speed = Number(e.target.value); });
  byId("replay-close").addEventListener("click", close);
}

// open shows the end of the run, which tells most, or the time that was looked at before. Where there is nothing but the
// past it cannot be left.
let isAll = false;
export async function open(all = false) {
  range = await ask("api/history");
  if (!range.from || range.to <= range.from) throw new Error("there is nothing to replay: no run has begun here");
  byId("replay").hidden = false;
  document.body.classList.add("past");
  const slider = byId("replay-at"), seconds = range.to - range.from;
  slider.max = seconds;
  slider.step = Math.max(0.1, Math.min(1, seconds / 1000));
  const ns = "http://www.w3.org/2000/svg", marks = document.createDocumentFragment();
  for (const l of range.landings) {
    const m = document.createElementNS(ns, "rect");
    m.setAttribute("x", (100 * (l.at - range.from)) / seconds + "%");
    m.setAttribute("width", 2);
    m.setAttribute("height", 6);
    marks.append(m);
  }
  byId("replay-marks").replaceChildren(marks);
  slider.focus();
  isAll ||= all;
  byId("replay-close").hidden = byId("replay-open").hidden = isAll;
  go(at ? Math.min(Math.max(at, range.from), range.to) : range.to);
}

export function close() {
  if (!isOn() || isAll) return;
  pause();
  byId("replay").hidden = true;
  document.body.classList.remove("past");
  leave();
}

// go shows a time. While an answer is under way only the last wish is remembered.
async function go(to) {
  at = Math.min(range.to, Math.max(range.from, to));
  byId("replay-at").value = at - range.from;
  const landed = range.landings.filter((l) => l.at <= at).length;
  const text = `${clock(at)}, ${landed} of ${range.landings.length} landed`;
  byId("replay-at").setAttribute("aria-valuetext", text);
  setText(byId("replay-time"), text);
  wanted = at;
  if (isReading) return;
  isReading = true;
  try {
    while (wanted !== undefined && isOn()) {
      const now = wanted;
      wanted = undefined;
      const s = await ask("api/past?at=" + now);
      if (isOn()) show(s);
    }
  } catch (e) {
    setText(byId("replay-time"), e.message);
    pause();
  } finally { isReading = false; }
}

// step goes to the landing before or after, and at the ends to the beginning and the end of the run.
function step(direction) {
  pause();
  const times = [range.from, ...range.landings.map((l) => l.at), range.to];
  const next = direction > 0 ? times.find((t) => t > at + 0.001) : times.findLast((t) => t < at - 0.001);
  if (next !== undefined) go(next);
}

export function toggle() {
  if (timer) { pause(); return; }
  if (at >= range.to) at = range.from;
  let last = performance.now();
  timer = setInterval(() => {
    const now = performance.now();
    const to = at + ((now - last) / 1000) * speed;
    last = now;
    if (!isReading) go(to);
    else at = to;
    if (to >= range.to) pause();
  }, 100);
  setText(byId("replay-play"), "Pause");
}

function pause() {
  clearInterval(timer);
  timer = undefined;
  setText(byId("replay-play"), "Play");
}
