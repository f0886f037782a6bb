// The dashboard: agents, canvases and what happens. Everything is set as text, nothing as markup.
"use strict";

const MOST_EVENTS = 200;
const at = (id) => document.getElementById(id);
let calls = 0;

async function rpc(method, params = {}) {
  const reply = await fetch("/rpc", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++calls, method, params }),
  });
  if (reply.status === 401) throw new SignedOut();
  const said = await reply.json();
  if (!said.error) return said.result;
  throw new Error(said.error.message);
}

class SignedOut extends Error {}

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
  const frame = at("canvas");
  frame.hidden = shown === undefined;
  if (shown === undefined) frame.removeAttribute("src");
  else frame.src = "/canvas/" + encodeURIComponent(shown);
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
  while (list.childElementCount > MOST_EVENTS) list.lastElementChild.remove();
  at("no-events").hidden = true;
}

function listen() {
  const source = new EventSource("/events");
  const types = ["session:preparing", "session:context-ready", "session:provider-failed",
    "session:tokens-revoked", "session:tools-changed", "agent:state", "agent:update", "permission:asked",
    "permission:answered", "tool:called", "canvas:changed", "hook:failed"];
  for (const type of types) {
    source.addEventListener(type, (event) => {
      showEvent(JSON.parse(event.data));
      if (type === "agent:state") showAgents().catch(failed);
      if (type === "canvas:changed") showCanvases().catch(failed);
    });
  }
  source.addEventListener("missed", (event) => {
    showEvent({ type: "missed", events: JSON.parse(event.data).missed });
    refresh().catch(failed);
  });
  source.onopen = () => say("live", "ok");
  source.onerror = () => {
    say("the daemon is away; trying again…", "failed");
    // A browser does not try again after a refusal.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => start().catch(failed), 5000);
  };
}

function say(text, kind) {
  at("state").textContent = text;
  at("state").className = kind ?? "";
}

function failed(error) {
  if (error instanceof SignedOut) {
    at("signed-in").hidden = true;
    at("signed-out").hidden = false;
    return say("signed out");
  }
  say(error.message, "failed");
}

const refresh = () => Promise.all([showAgents(), showCanvases()]);

async function start() {
  await refresh();
  at("signed-out").hidden = true;
  at("signed-in").hidden = false;
  listen();
}

start().catch(failed);
