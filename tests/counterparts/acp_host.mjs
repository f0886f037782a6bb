// A host with the official JavaScript SDK: two prompts, the second stopped in the middle; then the
// same session in another process. Says what it saw as JSON.
//
// node acp_host.mjs SDK FOLDER PROGRAM ARGUMENT…

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, cwd, program, ...args] = process.argv.slice(2);
const acp = await import(pathToFileURL(sdk).href);
const { methods } = acp;

const seen = { stopReasons: [], asked: 0, text: "", loaded: [] };
let loading = false;
let heard = () => {};

async function hosting(work) {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  await acp
    .client({ name: "tests" })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      seen.asked += 1;
      const option = params.options.find((option) => option.kind === "allow_once");
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    })
    .onNotification(methods.client.session.update, ({ params }) => {
      const { update } = params;
      if (loading) {
        seen.loaded.push(update.sessionUpdate);
      } else if (update.sessionUpdate === "agent_message_chunk") {
        seen.text += update.content.text;
      }
      heard(update);
    })
    .connectWith(stream, work);
  child.stdin.end();
  const code = await new Promise((done) => child.on("close", done));
  if (code !== 0) throw new Error(`the agent ended with ${code}`);
}

const prompt = (text) => [{ type: "text", text }];
const hello = (agent) =>
  agent.request(methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
    clientInfo: { name: "tests", version: "1" },
  });

let sessionId;
await hosting(async (agent) => {
  seen.initialized = await hello(agent);
  ({ sessionId } = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] }));
  const say = async (text) => {
    const params = { sessionId, prompt: prompt(text) };
    const { stopReason } = await agent.request(methods.agent.session.prompt, params);
    seen.stopReasons.push(stopReason);
  };
  await say("make a file");
  heard = (update) => {
    if (update.sessionUpdate !== "agent_message_chunk") return;
    heard = () => {};
    agent.notify(methods.agent.session.cancel, { sessionId });
  };
  await say("tell a story");
});

await hosting(async (agent) => {
  await hello(agent);
  loading = true;
  await agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  loading = false;
  const params = { sessionId, prompt: prompt("what does it say?") };
  const { stopReason } = await agent.request(methods.agent.session.prompt, params);
  seen.stopReasons.push(stopReason);
});

console.log(JSON.stringify(seen));
