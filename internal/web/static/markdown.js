// Markdown as elements. What members say is never HTML: each text becomes a text node, and a link is shown with its
// address and opens nothing, because a model may have it from a file of somebody else.
import { ask, clean, el, pieces } from "./page.js";

// markdown returns the blocks of a text. What it does not know stays as it is written.
export function markdown(text) {
  const box = el("div", { class: "markdown" }), lines = text.replace(/\r\n?/g, "\n").split("\n");
  for (let at = 0; at < lines.length;) at = block(box, lines, at);
  return box;
}

const fence = /^ {0,3}(`{3,}|~{3,})\s*([\w+-]*)/, heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/, quote = /^ {0,3}>\s?/;
const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/, rule = /^ {0,3}([-*_])(\s*\1){2,}\s*$/, divider = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

// block adds the block that begins at a line, and returns where the next one begins. Nobody nests as deep as this goes.
const deepest = 12;
let depth = 0;
function block(box, lines, at) {
  if (depth < deepest) {
    depth++;
    try { return anyBlock(box, lines, at); } finally { depth--; }
  }
  box.append(el("p", {}, lines[at]));
  return at + 1;
}

function anyBlock(box, lines, at) {
  const line = lines[at];
  if (!line.trim()) return at + 1;
  const open = fence.exec(line);
  if (open) return code(box, lines, at + 1, open[1], open[2]);
  const head = heading.exec(line);
  if (head) {
    // The page has headings of its own above these.
    box.append(el("p", { role: "heading", "aria-level": Math.min(6, head[1].length + 2), class: "h" + Math.min(3, head[1].length) }, ...inline(head[2])));
    return at + 1;
  }
  if (rule.test(line)) {
    box.append(el("hr"));
    return at + 1;
  }
  if (quote.test(line)) {
    const within = [];
    for (; at < lines.length && quote.test(lines[at]); at++) within.push(lines[at].replace(quote, ""));
    const inner = el("blockquote");
    for (let i = 0; i < within.length;) i = block(inner, within, i);
    box.append(inner);
    return at;
  }
  if (line.includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && divider.test(lines[at + 1]) && lines[at + 1].includes("|")) return table(box, lines, at);
  if (item.test(line)) return list(box, lines, at);
  const words = [];
  for (; at < lines.length && lines[at].trim() && !(words.length && (fence.test(lines[at]) || heading.test(lines[at]) || quote.test(lines[at]) || item.test(lines[at]))); at++) {
    if (words.length) words.push(el("br"));
    words.push(...inline(lines[at]));
  }
  box.append(el("p", {}, ...words));
  return at;
}

// code adds a block of code up to its fence, or to the end while it streams in. A difference has its colours.
function code(box, lines, at, mark, language) {
  const within = [];
  for (; at < lines.length && !(lines[at].trim().startsWith(mark) && !lines[at].trim().replaceAll(mark[0], "")); at++) within.push(lines[at]);
  const isDiff = language === "diff" || language === "patch";
  const pre = el("pre", { tabindex: 0, "aria-label": language || "code" });
  if (!isDiff) pre.append(el("code", {}, within.join("\n")));
  else for (const l of within) pre.append(el("span", { class: "line " + ({ "+": "plus", "-": "minus", "@": "faint" }[l[0]] || "") }, l + "\n"));
  // What streams in is coloured once it has ended.
  if (!isDiff && language && at < lines.length) colour(pre.firstChild, language, within);
  box.append(pre);
  return at + 1;
}

// colour finds the parts of a block of code. What was asked for once is there at once when it is drawn again.
const coloured = new Map();
function colour(box, language, lines) {
  const text = lines.join("\n"), key = language + "\n" + text;
  if (!coloured.has(key)) {
    if (coloured.size > 300) coloured.clear();
    coloured.set(key, ask("api/code", { language, text }));
  }
  coloured.get(key).then((all) => {
    if (all.some((parts) => parts.length)) box.replaceChildren(...all.flatMap((parts, i) => [...(i ? ["\n"] : []), ...pieces(lines[i], parts)]).filter(Boolean).map((x) => x instanceof Node ? x : clean(x)));
  }, () => coloured.delete(key)); // it stays plain
}

// list adds a list. What is indented deeper than an item belongs to it, up to a depth that people write.
function list(box, lines, at) {
  const [, indent, mark] = item.exec(lines[at]), isNumbered = /\d/.test(mark);
  const all = el(isNumbered ? "ol" : "ul", isNumbered ? { start: parseInt(mark, 10) } : {});
  while (at < lines.length) {
    const m = item.exec(lines[at]);
    if (!m || m[1].length > indent.length || m[1].length < indent.length || /\d/.test(m[2]) !== isNumbered) break;
    const done = /^\[([ xX])\]\s+/.exec(m[3]);
    const li = el("li", {}, ...(done ? [done[1] === " " ? "☐ " : "☑ "] : []), ...inline(done ? m[3].slice(done[0].length) : m[3]));
    const within = [];
    for (at++; at < lines.length; at++) {
      const deeper = /^\s*/.exec(lines[at])[0].length > indent.length;
      if (lines[at].trim() ? !deeper : !(at + 1 < lines.length && /^\s+\S/.test(lines[at + 1]) && /^\s*/.exec(lines[at + 1])[0].length > indent.length)) break;
      within.push(lines[at].slice(Math.min(indent.length + 2, /^\s*/.exec(lines[at])[0].length)));
    }
    // Each level loses at least one sign, so this comes to an end.
    for (let i = 0; i < within.length;) i = block(li, within, i);
    all.append(li);
    while (at + 1 < lines.length && !lines[at].trim() && item.test(lines[at + 1]) && item.exec(lines[at + 1])[1].length === indent.length) at++;
  }
  box.append(all);
  return at;
}

// table adds a table with the alignment that its second line says.
function table(box, lines, at) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((c) => c.trim().replaceAll("\\|", "|"));
  const right = cells(lines[at + 1]).map((c) => c.endsWith(":"));
  const row = (line, name) => el("tr", {}, ...cells(line).map((c, i) => el(name, right[i] ? { class: "figure" } : {}, ...inline(c))));
  const body = el("tbody"), all = el("table", {}, el("thead", {}, row(lines[at], "th")), body);
  for (at += 2; at < lines.length && lines[at].includes("|"); at++) body.append(row(lines[at], "td"));
  box.append(el("div", { class: "wide", tabindex: 0 }, all));
  return at;
}

const marks = /(`+)(.+?)\1(?!`)|\*\*(?=\S)(.+?)\*\*|__(?=\S)(.+?)__|\*(?=[^\s*])([^*]+)\*|(?<!\w)_(?=[^\s_])([^_]+)_(?!\w)|~~(.+?)~~|\[([^\]]+)\]\(([^()\s]+)[^()]*\)/;

// inline returns the parts of a line.
function inline(text) {
  if (text.length > 4000) return [text]; // nobody writes such a line by hand, and it would take long
  const parts = [];
  for (let m; (m = marks.exec(text));) {
    if (m.index) parts.push(text.slice(0, m.index));
    const [whole, , code, strong, strong2, em, em2, gone, words, address] = m;
    if (code !== undefined) parts.push(el("code", {}, code.trim() || code));
    else if (words !== undefined) parts.push(...inline(words), el("span", { class: "faint" }, ` (${address})`));
    else if (gone !== undefined) parts.push(el("s", {}, ...inline(gone)));
    else if (strong ?? strong2) parts.push(el("strong", {}, ...inline(strong ?? strong2)));
    else parts.push(el("em", {}, ...inline(em ?? em2)));
    text = text.slice(m.index + whole.length);
  }
  if (text) parts.push(text);
  return parts;
}
