// The data of a shared run: muster share writes it into the page, which then asks no server. Go makes it in share.go.
const element = document.getElementById("shared");
const data = element && read(element);

// isShared says that the page is a file of muster share.
export const isShared = Boolean(element);

async function read(e) {
  if (e.type === "application/json") return JSON.parse(e.textContent);
  const bytes = Uint8Array.from(atob(e.textContent.trim()), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

// answer returns what the server would answer to a GET.
export async function answer(path) {
  const d = await data, [name, query] = path.split("?"), parameters = new URLSearchParams(query);
  if (name === "api/past") return past(d, Number(parameters.get("at")));
  const found = Object.hasOwn(d.answers, name) && d.answers[name];
  if (!found) throw new Error("this file does not have it");
  // All of a conversation is in the first answer.
  return Number(parameters.get("after")) ? { ...found, said: [], skipped: 0, steps: null } : found;
}

// past returns the state at a time. A frame names its values by their positions among the values, each of which is there
// once.
function past(d, at) {
  const frame = d.frames.findLast((f) => f.at <= at) || d.frames[0], state = { now: at };
  for (const [name, at] of Object.entries(frame.fields)) {
    state[name] = Array.isArray(at) ? at.map((i) => d.values[i]) : d.values[at];
  }
  state.events = d.events.filter((e) => e.at <= at).slice(-d.timeline);
  return state;
}
