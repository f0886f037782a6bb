"""An MCP server with two tools, one of which fails, and a secret in its environment."""

import json
import os
import sys

TOOLS = [
    {"name": "page", "description": "Reads a page.", "inputSchema": {
        "type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}},
    {"name": "broken", "description": "Fails.", "inputSchema": {"type": "object"}},
]


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "wiki", "version": "1"}, "instructions": "Ask for pages by title."}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call" and params["name"] == "page":
        with open("starts.txt") as file:
            starts = len(file.read().splitlines())
        text = f"{params['arguments']['title']} as {os.environ['WIKI_KEY']}, start {starts}"
        return {"content": [{"type": "text", "text": text}]}
    if method == "tools/call":
        os._exit(3)
    return {}


with open("starts.txt", "a") as file:
    print(os.getpid(), file=file)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
