// The dashboard: agents, canvases and what happens. Everything is set as text, nothing as markup.
import { DeadLink, SignedOut, events, rpc, signIn, signOut } from "/session.js";

const MAX_EVENTS = 200;
const AGAIN_MS = 3000;
const at = (id) => document.getElementById(id);

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind && /^[a-z]+$/.test(kind)) made.className = kind;
  return made;
}

// A list, whether the answer is one or holds one.
const listed = (answer, key) => (Array.isArray(answer) ? answer : (answer?.[key] ?? []));

async function showAgents() {
  const agents = listed(await rpc("agent.list"), "agents");
  const rows = agents.map((agent) => {
    const row = element("tr");
    row.append(element("td", agent.name), element("td", agent.state, agent.state),
      element("td", agent.backendType ?? agent.backend ?? ""), element("td", agent.archetype ?? ""));
    return row;
  });
  at("agents").replaceChildren(...rows);
  at("no-agents").hidden = rows.length > 0;
}

let shown;

async function showCanvases() {
  const canvases = listed(await rpc("canvas.list"), "canvases");
  const names = canvases.map((canvas) => canvas.agentName ?? canvas.name);
  if (!names.includes(shown)) shown = names[0];
  const tabs = canvases.map((canvas, i) => {
    const tab = element("li");
    const button = element("button", canvas.title || names[i]);
    button.title = names[i];
    button.setAttribute("aria-pressed", names[i] === shown);
    button.addEventListener("click", () => {
      shown = names[i];
      showCanvases().catch(failed);
    });
    tab.append(button);
    return tab;
  });
  at("canvases").replaceChildren(...tabs);
  at("no-canvases").hidden = tabs.length > 0;
  at("canvas").replaceChildren(...(shown === undefined ? [] : [await frameOf(shown)]));
}

// A frame's request cannot carry a header, so it has a path of its own, which works once.
async function frameOf(agent) {
  const { path } = await rpc("canvas.frame", { agent });
  const frame = element("iframe");
  frame.setAttribute("sandbox", "");
  frame.title = "The canvas";
  frame.src = path;
  return frame;
}

function showEvent(happened) {
  const { type, at: when, id, ...rest } = happened;
  const line = element("li");
  const time = element("time", when ? new Date(when).toLocaleTimeString() : "");
  const text = Object.entries(rest)
    .map(([key, value]) => `${key} ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("  ");
  line.append(time, element("span", type), element("span", text.slice(0, 400)));
  const list = at("events");
  list.prepend(line);
  while (list.childElementCount > MAX_EVENTS) list.lastElementChild.remove();
  at("no-events").hidden = true;
}

let last;
let listening;

// Follows the events. A hidden tab does not: a browser has few connections to one host, for all tabs together.
async function listen() {
  if (listening || document.hidden) return;
  listening = new AbortController();
  const { signal } = listening;
  try {
    say("live", "ok");
    for await (const { id, type, data } of events(last, signal)) {
      last = id;
      showEvent(type === "missed" ? { type, events: data.missed } : data);
      if (type === "agent:state" || type === "missed") showAgents().catch(failed);
      if (type === "canvas:changed" || type === "missed") showCanvases().catch(failed);
    }
    throw new Error("the daemon is away");
  } catch (error) {
    if (listening?.signal === signal) listening = undefined;
    if (error instanceof SignedOut) return failed(error);
    if (signal.aborted) return;
    say("the daemon is away; trying again…", "failed");
    setTimeout(() => start().catch(again), AGAIN_MS);
  }
}

function again(error) {
  failed(error);
  if (!(error instanceof SignedOut)) setTimeout(() => start().catch(again), AGAIN_MS);
}

document.addEventListener("visibilitychange", () => {
  if (at("signed-in").hidden) return;
  if (!document.hidden) return start().catch(again);
  hush();
});

function hush() {
  listening?.abort();
  listening = undefined;
}

function say(text, kind) {
  at("state").textContent = text;
  at("state").className = kind ?? "";
}

function show(signedIn) {
  at("signed-in").hidden = !signedIn;
  at("sign-out").hidden = !signedIn;
  at("signed-out").hidden = signedIn;
}

function failed(error) {
  if (!(error instanceof SignedOut)) return say(error.message, "failed");
  hush();
  show(false);
  say("signed out");
}

async function start() {
  await Promise.all([showAgents(), showCanvases()]);
  show(true);
  listen();
}

at("sign-out").addEventListener("click", () => {
  signOut().then(() => failed(new SignedOut()), failed);
});

signIn().catch((error) => {
  // A page that was signed in before stays so, and says why the link did nothing.
  if (!(error instanceof DeadLink || error instanceof SignedOut)) return say(error.message, "failed");
  at("dead-link").hidden = false;
}).then(start).catch(failed);
