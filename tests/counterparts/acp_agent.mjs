// An agent made with the official SDK, which checks all that it is sent. It uses every method that a host
// may offer, and says what it was answered.
import * as acp from "@agentclientprotocol/sdk";
import { Readable, Writable } from "node:stream";

const { agent: ours, client: theirs } = acp.methods;
const turns = new Map();
let can = {};

const app = acp
  .agent({ name: "sdk" })
  .onRequest(ours.initialize, ({ params }) => {
    can = params.clientCapabilities;
    return {
      protocolVersion: acp.PROTOCOL_VERSION,
      agentCapabilities: { loadSession: false },
      agentInfo: { name: "sdk", version: "1" },
    };
  })
  .onRequest(ours.session.new, ({ params }) => {
    turns.set("sdk-session", { cwd: params.cwd, servers: params.mcpServers, stop: new AbortController() });
    return { sessionId: "sdk-session" };
  })
  .onRequest(ours.session.prompt, async ({ params, client }) => {
    const { sessionId, prompt } = params;
    const turn = turns.get(sessionId);
    turn.stop = new AbortController();
    const tell = (update) => client.notify(theirs.session.update, { sessionId, update });
    const say = (text) => tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
    if (prompt[0].text === "wait") {
      await say("waiting");
      await new Promise((done) => turn.stop.signal.addEventListener("abort", done));
      return { stopReason: "cancelled" };
    }
    const path = `${turn.cwd}/note.txt`;
    const toolCall = { toolCallId: "call-1", title: "Write note.txt", kind: "edit", status: "pending", locations: [{ path }] };
    await tell({ sessionUpdate: "tool_call", ...toolCall });
    const options = [
      { optionId: "ok", name: "Allow", kind: "allow_once" },
      { optionId: "no", name: "Reject", kind: "reject_once" },
    ];
    const { outcome } = await client.request(theirs.session.requestPermission, { sessionId, toolCall, options });
    await client.request(theirs.fs.writeTextFile, { sessionId, path, content: "one\ntwo\nthree\n" });
    const read = await client.request(theirs.fs.readTextFile, { sessionId, path, line: 2, limit: 1 });
    const terminal = await client.createTerminal({ sessionId, command: "cat", args: ["note.txt"], outputByteLimit: 6 });
    const exit = await terminal.waitForExit();
    const output = await terminal.currentOutput();
    await terminal.release();
    let outside = "read";
    try {
      await client.request(theirs.fs.readTextFile, { sessionId, path: `${turn.cwd}/../outside.txt` });
    } catch (error) {
      outside = error.message;
    }
    const content = [{ type: "content", content: { type: "text", text: "written" } }];
    await tell({ sessionUpdate: "tool_call_update", toolCallId: "call-1", status: "completed", content });
    await say(JSON.stringify({ can, servers: turn.servers.map((server) => server.name), outcome, read, exit, output, outside }));
    return { stopReason: "end_turn" };
  })
  .onNotification(ours.session.cancel, ({ params }) => turns.get(params.sessionId)?.stop.abort());

app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
