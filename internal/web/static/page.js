// What all parts of the page use. Texts come from models, files and other programs: they become text nodes here and
// nowhere anything else, and characters that steer or reorder text are made visible.
import * as shared from "./shared.js";

export const byId = (id) => document.getElementById(id);

const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

// clean makes characters visible that would change how the text around them looks.
export const clean = (text) => String(text ?? "").replace(/\r\n/g, "\n")
  .replace(unsafe, (c) => "\\u{" + c.codePointAt(0).toString(16) + "}");

// el makes an element with attributes, and with texts and elements in it.
export function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) if (v !== undefined && v !== false) e.setAttribute(k, v);
  e.append(...children.filter((c) => c !== undefined && c !== "" && c !== false).map((c) => c instanceof Node ? c : document.createTextNode(clean(c))));
  return e;
}

// pieces returns a line of code as its parts, each with its class. The server finds them.
export function pieces(text, parts = []) {
  let at = 0;
  const all = parts.map((p) => {
    const piece = text.slice(at, at += p.n);
    return p.c && piece ? el("span", { class: p.c }, piece) : piece;
  });
  return [...all, text.slice(at)];
}

// setText changes a text only where it is another one, so that a selection in it stays.
export function setText(e, text) {
  text = clean(text);
  if (e.textContent !== text) e.textContent = text;
}

// money is an amount of dollars, as the program prints it.
export function money(n) {
  if (n <= 0 || n >= 0.01) return "$" + n.toFixed(2);
  return n >= 0.0001 ? "$" + n.toFixed(4) : "under $0.0001";
}

// arrange makes elements the children of a box. Those that stay in their order are not touched, so that what is written
// in them and the focus stay too.
export function arrange(box, now) {
  for (const e of [...box.children]) if (!now.includes(e)) e.remove();
  now.forEach((e, i) => { if (box.children[i] !== e) box.insertBefore(e, box.children[i] || null); });
}

// ago says in one unit how long something lasts.
export function ago(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return s + "s";
  if (s < 3600) return Math.round(s / 60) + "m";
  return s < 172800 ? Math.round(s / 3600) + "h" : Math.round(s / 86400) + "d";
}

// word is what a state is called: a value of kind "tasks", "requests" or "mails", as the server says.
let words = {};
export function setWords(all) { words = all; }
export const word = (kind, value) => words[kind]?.[value] ?? value.replaceAll("_", " ");

// clock is the time of day, and day also the date where it is not today's. Both are as in the timeline, which is as in
// all faces, whatever the browser's language has.
export const clock = (seconds) => new Date(seconds * 1000).toTimeString().slice(0, 8);
export function day(seconds) {
  const date = new Date(seconds * 1000).toLocaleDateString();
  return (date === new Date().toLocaleDateString() ? "" : date + " ") + clock(seconds);
}

// ask reads from the server, or sends to it where there is a body. Its errors have the hint of what to do. It is the only
// way to data: in a file of muster share it reads what is in the file.
export async function ask(path, body) {
  if (shared.isShared) return shared.answer(path);
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, options);
  if (answer.status === 401) {
    const e = new Error((await answer.text()).replace(/^muster: /, "").trim());
    e.isRefused = true;
    throw e;
  }
  const text = await answer.text();
  let data;
  try { data = JSON.parse(text); } catch { throw new Error(text || answer.statusText); }
  if (!answer.ok) throw new Error(data.error + (data.hint ? "\n" + data.hint : ""));
  return data;
}

// followEnd keeps the end of a box in sight until its reader scrolls up, and again once the end is reached. rest is for
// what is read from its beginning.
export function followEnd(box, changed = () => {}) {
  let follows = true, isResting = false, size = "";
  const sizeNow = () => box.clientWidth + " " + box.clientHeight;
  const isAtEnd = () => box.scrollHeight - box.scrollTop - box.clientHeight < 24;
  const show = () => { size = sizeNow(); if (follows) box.scrollTop = box.scrollHeight; };
  box.addEventListener("scroll", () => {
    if (isResting) return;
    // In a box of another size the lines are broken anew, and the browser scrolls to keep what was in sight: that is not the reader.
    if (follows && size !== sizeNow()) show();
    else if (follows !== isAtEnd()) { follows = !follows; changed(follows); }
  });
  new ResizeObserver(show).observe(box); // a phone that is turned has other lines
  return { show, resume() { isResting = false; follows = true; show(); changed(true); },
    rest() { isResting = true; follows = false; box.scrollTop = 0; } };
}
