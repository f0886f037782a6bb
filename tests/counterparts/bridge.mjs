// An MCP server on standard input and output, over HTTP: what the conformance suite speaks with.
// Arguments: the command of the server. The port is printed.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

const [command, ...args] = process.argv.slice(2);
const sessions = new Map();

// A process for each session, and every message as it comes.
async function session() {
  const inner = new StdioClientTransport({ command, args, env: process.env });
  const outer = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, outer),
  });
  outer.onmessage = (message) => inner.send(message);
  inner.onmessage = (message) => outer.send(message, { relatedRequestId: message.id });
  outer.onclose = () => inner.close();
  await inner.start();
  await outer.start();
  return outer;
}

const server = createServer(async (request, response) => {
  const known = sessions.get(request.headers["mcp-session-id"]);
  await (known ?? (await session())).handleRequest(request, response);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on("end", () => process.exit());
