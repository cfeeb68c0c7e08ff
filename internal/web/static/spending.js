// What was spent, over time and in sums, and how full the contexts are. The charts are drawn from api/history; each has
// a table with the same figures, which is what screen readers read.
import { ago, ask, clean, clock, el, money } from "./page.js";

const ns = "http://www.w3.org/2000/svg", mostNames = 6; // with a colour of their own; the others share one

// spending shows all of it in a box. s is the state.
export async function spending(box, s) {
  const h = s.run.started_at ? await ask("api/history") : { members: [], bins: 0 };
  const parts = [el("p", { class: "big" }, s.spent || "no price is known"), el("p", { class: "faint" },
    s.run.started_at ? `the last run, which began ${ago(s.now - s.run.started_at)} ago` : "no run yet")];
  if (h.members.some((m) => m.turns)) parts.push(...chart(h), ...contexts(h));
  const subject = (id) => id === "0" ? "no task" : `${id} ${s.tasks.find((t) => String(t.id) === id)?.subject || ""}`;
  for (const [title, sums, name] of [["Member", byMember(s.spending)], ["Task", s.spending.tasks, subject], ["Model", s.spending.models]]) {
    const rows = Object.entries(sums || {}).sort((a, b) => b[1].dollars - a[1].dollars || b[1].calls - a[1].calls);
    if (!rows.length) continue;
    const lines = rows.map(([key, x]) => {
      const cost = x.calls && x.calls === x.unpriced_calls ? "unknown" : x.dollars || x.unpriced_calls ? (x.unpriced_calls ? "at least " : "") + money(x.dollars) : "";
      const figures = [x.calls, x.input + (x.cache_write || 0) + (x.cache_write_long || 0), x.cache_read, x.output].map((n) => Number(n || 0).toLocaleString());
      return [name ? name(key) : key || "-", ...figures, cost];
    });
    const titles = [title, "Calls", "Input", "Cached", "Output", "Cost"];
    const isFree = lines.every((l) => !l.at(-1)); // what costs nothing has no column of costs
    parts.push(el("h3", {}, "By " + title.toLowerCase()), isFree ? table(titles.slice(0, -1), lines.map((l) => l.slice(0, -1))) : table(titles, lines));
  }
  box.replaceChildren(...parts);
}

// byMember returns what each member has spent without its helpers, and what each helper has spent: the rows add up.
function byMember({ members, agents = {} }) {
  const rows = Object.fromEntries(Object.entries(members || {}).map(([name, x]) => [name, { ...x }]));
  for (const [name, a] of Object.entries(agents)) {
    const of = rows[a.member];
    for (const [key, x] of Object.entries(a)) if (of && typeof x === "number") of[key] = (of[key] || 0) - x;
    rows[name] = a;
  }
  return rows;
}

// table makes a table whose first column is text and whose others are figures.
function table(titles, rows) {
  const line = (cells, name) => el("tr", {}, ...cells.map((c, i) => el(name, { class: i ? "figure" : undefined, scope: name === "th" ? "col" : undefined }, String(c))));
  return el("div", { class: "wide", tabindex: 0 }, el("table", {}, el("thead", {}, line(titles, "th")), el("tbody", {}, ...rows.map((r) => line(r, "td")))));
}

function svg(name, attributes, ...children) {
  const e = document.createElementNS(ns, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

// chart draws what was spent up to each time, one member on top of the other. Where nothing has a price, it draws the
// tokens that were written.
function chart(h) {
  const isPriced = h.members.some((m) => m.dollars.some(Boolean));
  const unit = (n) => isPriced ? money(n) : Math.round(n).toLocaleString() + " tokens";
  const series = h.members.map((m) => ({ name: m.name, each: isPriced ? m.dollars : m.output })).filter((m) => m.each.some(Boolean));
  const shown = series.slice(0, mostNames), rest = series.slice(mostNames);
  if (rest.length) shown.push({ name: `${rest.length} others`, each: rest[0].each.map((_, i) => rest.reduce((n, m) => n + m.each[i], 0)) });
  const width = 640, height = 150, sums = new Array(h.bins).fill(0), layers = [];
  for (const s of shown) {
    let total = 0;
    const low = [...sums];
    s.each.forEach((n, i) => { total += n; sums[i] += total; });
    layers.push({ ...s, low, high: [...sums], total });
  }
  const top = Math.max(...sums, 1e-9), x = (i) => (i * width) / (h.bins - 1), y = (n) => height - (n * (height - 8)) / top;
  const point = (n, i) => `${x(i).toFixed(1)} ${y(n).toFixed(1)}`;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", "aria-hidden": "true", preserveAspectRatio: "none" },
    ...[0.25, 0.5, 0.75].map((f) => svg("line", { x1: 0, x2: width, y1: y(top * f), y2: y(top * f), class: "grid" })),
    ...layers.map((l, i) => svg("path", { class: "series-" + i, d: `M${l.high.map(point).join("L")}L${l.low.map(point).reverse().join("L")}Z` })));
  const time = (f) => clock(h.from + f * (h.to - h.from));
  const legend = el("ul", { class: "legend" }, ...layers.map((l, i) => el("li", {}, el("span", { class: "swatch series-" + i }), `${l.name} ${unit(l.total)}`)));
  const parts = 4, rows = layers.map((l) => [l.name, ...Array.from({ length: parts }, (_, p) => {
    const i = Math.min(h.bins - 1, Math.round(((p + 1) * h.bins) / parts) - 1);
    return unit(l.high[i] - l.low[i]);
  })]);
  return [el("h3", {}, isPriced ? "Spent over time" : "Written over time"),
    el("figure", {}, el("div", { class: "scale", "aria-hidden": "true" }, el("span", {}, unit(top))), picture,
      el("div", { class: "scale", "aria-hidden": "true" }, ...[0, 0.5, 1].map((f) => el("span", {}, time(f)))), legend,
      el("div", { class: "hidden" }, table(["Member, spent until", ...Array.from({ length: parts }, (_, p) => time((p + 1) / parts))], rows)))];
}

// contexts draws how full the context of each member was.
function contexts(h) {
  const rows = h.members.filter((m) => m.turns).map((m) => {
    const now = m.context[h.bins - 1], top = m.window || Math.max(...h.members.flatMap((x) => x.context), 1);
    const line = m.context.map((n, i) => `${((i * 200) / (h.bins - 1)).toFixed(1)} ${(27 - (25 * Math.min(n, top)) / top).toFixed(1)}`).join("L");
    const share = m.window ? Math.round((100 * now) / m.window) + "%" : "";
    return el("tr", {}, el("td", {}, m.name), el("td", {}, svg("svg", { viewBox: "0 0 200 28", class: "spark", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path", { d: "M" + line }))),
      el("td", { class: "figure" }, now.toLocaleString()), el("td", { class: "figure" + (m.window && now > 0.8 * m.window ? " bad" : "") }, share), el("td", { class: "figure" }, m.turns.toLocaleString()));
  });
  const titles = ["Member", "Over time", "Tokens", "Full", "Turns"].map((t, i) => el("th", { scope: "col", class: i > 1 ? "figure" : undefined }, clean(t)));
  return [el("h3", {}, "Context"), el("div", { class: "wide", tabindex: 0 }, el("table", { class: "contexts" }, el("thead", {}, el("tr", {}, ...titles)), el("tbody", {}, ...rows)))];
}
