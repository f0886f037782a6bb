// Sign-in, and the calls of a page that is signed in. There is no cookie: the code in a sign-in link is exchanged for a
// secret that this origin alone can read, port included, and each request carries it in its header.
const KEY = "contexture.secret";

// The page is not signed in, or no longer.
export class SignedOut extends Error {}

// The sign-in link was used before, or has expired.
export class DeadLink extends Error {}

// A browser may refuse storage; then the page stays signed in until it is reloaded.
const stored = (use) => {
  try { return use(localStorage); } catch { return null; }
};
let secret = stored((storage) => storage.getItem(KEY));

function keep(value) {
  secret = value;
  stored((storage) => (value === null ? storage.removeItem(KEY) : storage.setItem(KEY, value)));
}

// Another tab signed in or out, or a new link was opened in this one.
addEventListener("storage", (event) => event.key === KEY && location.reload());
addEventListener("hashchange", () => location.hash.startsWith("#sign-in=") && location.reload());

const json = (value) => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(value),
});

async function send(path, options) {
  const reply = await fetch(path, { credentials: "omit", cache: "no-store", redirect: "error", ...options });
  if (reply.ok) return reply;
  const error = (await reply.json().catch(() => ({}))).error ?? {};
  if (error.code === "DeadLink") throw new DeadLink(error.message);
  // Whoever is told to have guessed came with a secret that does not count.
  if (reply.status === 401 || error.code === "Guessing") throw new SignedOut(error.message);
  throw new Error(error.message ?? `HTTP ${reply.status}`);
}

async function request(path, options = {}) {
  if (secret === null) throw new SignedOut();
  const sent = secret;
  try {
    const headers = { ...options.headers, authorization: `Bearer ${sent}` };
    return await send(path, { ...options, headers });
  } catch (error) {
    if (error instanceof SignedOut && secret === sent) keep(null);
    throw error;
  }
}

// Uses up the link that the page was opened with, if it was one. Its code leaves the address first.
export async function signIn() {
  const link = /^#sign-in=(.*)$/.exec(location.hash);
  if (!link) return;
  history.replaceState(null, "", location.pathname);
  const reply = await send("/sign-in", json({ code: link[1] }));
  keep((await reply.json()).secret);
}

export async function signOut() {
  await rpc("serve.signOut");
  keep(null);
}

let calls = 0;

export async function rpc(method, params = {}) {
  const reply = await request("/rpc", json({ jsonrpc: "2.0", id: ++calls, method, params }));
  const said = await reply.json();
  if (!said.error) return said.result;
  throw new Error(said.error.message);
}

// Events as they come, behind the one of this id: `{id, type, data}`. Ends with the connection.
export async function* events(after, signal) {
  const headers = after === undefined ? {} : { "last-event-id": after };
  const reply = await request("/events", { headers, signal });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (text + value).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const event = { id: after, type: "message", data: "" };
      for (const line of block.split("\n")) {
        const [, name, rest] = /^([a-z]*):? ?(.*)$/s.exec(line) ?? [];
        if (name === "id") event.id = rest;
        else if (name === "event") event.type = rest;
        else if (name === "data") event.data += rest;
      }
      // What has no data is a sign of life.
      if (event.data) yield { ...event, data: JSON.parse(event.data) };
    }
  }
}
