"""An MCP server or an ACP agent that says what a plan tells it to, whatever that is.

`peer.py mcp PLAN` and `peer.py acp PLAN`. A plan is JSON: methods, and what is answered to each, as a list of pieces: a
text, or `[text, times]`. `$ID` is the request's id and `$SESSION` the session's. An agent's plan has `prompts` beside:
what is said before a prompt is answered, by its text. `$TOKEN`, `$UPPER`, `$HEAD` and `$TAIL` are the session's token, in
capitals, and its halves; it is written to the file `tokenFile`.
"""
import json
import os
import re
import sys
import time

kind, plan = sys.argv[1], json.load(open(sys.argv[2]))
words = {"$SESSION": f"own-{os.getpid()}"}
out = sys.stdout

DEFAULTS = {
    "mcp": {
        "initialize": '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"1"}}',
        "tools/list": '{"tools":[{"name":"t","description":"d","inputSchema":{"type":"object"}}]}',
        "tools/call": '{"content":[{"type":"text","text":"ok"}]}',
    },
    "acp": {
        "initialize": '{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}',
        "session/new": '{"sessionId":"$SESSION"}',
        "session/prompt": '{"stopReason":"end_turn"}',
    },
}[kind]


def fill(text):
    for name, value in words.items():
        text = text.replace(name, value)
    return text


def write(pieces):
    for piece in pieces:
        text, times = (piece, 1) if isinstance(piece, str) else piece
        text = fill(text)
        block = max(1, (1 << 20) // max(1, len(text)))
        while times > 0:
            out.write(text * min(times, block))
            times -= block
    out.write("\n")
    out.flush()


def find_token(servers):
    for server in servers:
        for value in [entry.get("value", "") for entry in server.get("env", [])] + list(server.get("args", [])):
            if os.path.isfile(value):
                value = open(value, errors="replace").read()
            found = re.search(r"\b[0-9a-f]{64}\b", value)
            if found:
                token = found.group()
                words.update({"$TOKEN": token, "$UPPER": token.upper(), "$HEAD": token[:32], "$TAIL": token[32:]})
                if "tokenFile" in plan:
                    open(plan["tokenFile"], "w").write(token)
                return


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method is None:
        continue
    params = message.get("params") or {}
    words["$ID"] = json.dumps(message.get("id"))
    if method == "session/new":
        find_token(params.get("mcpServers", []))
    if method == "session/prompt":
        said = params["prompt"][-1].get("text", "")
        said = plan.get("prompts", {}).get(said, {})
        for text in said.get("lines", []):
            write([text] if isinstance(text, str) else text)
        for text in said.get("stderr", []):
            sys.stderr.write(fill(text) + "\n")
            sys.stderr.flush()
        time.sleep(said.get("pause", 0))
        words["$ID"] = json.dumps(message.get("id"))
        if "answer" in said:
            write(said["answer"])
            continue
    if "id" not in message:
        continue
    if method in plan:
        write(plan[method])
    elif method in DEFAULTS:
        write(['{"jsonrpc":"2.0","id":$ID,"result":' + DEFAULTS[method] + "}"])
    else:
        write(['{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}'])
