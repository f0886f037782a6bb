"""An ACP agent without a model: it does what its prompts say.

`say TEXT`        says it
`context`         says the first block of its first prompt
`canvas HTML`     shows it, through the MCP server that it was given
`tools`           says which tools that server has
`again`           calls the tool once more, over the connection that is open
`ask`             asks for permission, and says what was answered
`child`           starts a process that ignores being told to end, and says its number
`wait`            does nothing until it is called off
`flood N KIB`     says N updates of so many KiB, and then `done`
`crash`           ends at once
`## …`            a task behind what it is told: says what it did
"""
import json
import os
import subprocess
import sys

sessions = {}
first = {}
mcp = {}
number = 0


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(session, text):
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    send({"method": "session/update", "params": {"sessionId": session, "update": update}})


class Mcp:
    """The least of an MCP client."""

    def __init__(self, server):
        env = dict(os.environ, **{e["name"]: e["value"] for e in server["env"]})
        command = [server["command"], *server["args"]]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env, text=True)
        self.id = 0
        info = {"name": "scripted", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info})
        self.write({"method": "notifications/initialized"})

    def write(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.id += 1
        self.write({"id": self.id, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the MCP server ended")
            answer = json.loads(line)
            if answer.get("id") == self.id:
                return answer.get("result") or answer["error"]


def ours(session):
    if session not in mcp:
        server = next(s for s in sessions[session] if s["name"] == "contexture")
        mcp[session] = Mcp(server)
    return mcp[session]


def ask(session):
    global number
    number += 1
    options = [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    call = {"toolCallId": "c1", "title": "rm -rf build"}
    params = {"sessionId": session, "toolCall": call, "options": options}
    send({"id": f"q{number}", "method": "session/request_permission", "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == f"q{number}":
            return json.dumps(message.get("result", message.get("error")))
    sys.exit(0)


def prompt(session, blocks):
    text = blocks[-1]["text"]
    first.setdefault(session, blocks[0]["text"])
    word, _, rest = text.partition(" ")
    if word == "say":
        say(session, rest)
    elif word == "context":
        say(session, first[session])
    elif word == "canvas":
        say(session, json.dumps(ours(session).ask("tools/call", {"name": "canvas_update", "arguments": {"html": rest, "title": "A title"}})))
    elif word == "tools":
        say(session, json.dumps(ours(session).ask("tools/list", {})))
    elif word == "again":
        say(session, json.dumps(ours(session).ask("tools/call", {"name": "canvas_clear", "arguments": {}})))
    elif word == "ask":
        say(session, ask(session))
    elif word == "child":
        stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", stubborn], start_new_session=True, stdin=subprocess.DEVNULL)
        say(session, str(child.pid))
    elif word == "##":
        say(session, "did: " + text.rsplit("\n\n", 1)[1])
    elif word == "flood":
        many, kib = map(int, rest.split())
        for _ in range(many):
            say(session, "x" * (kib << 10))
        say(session, "done")
    elif word == "crash":
        os._exit(3)
    elif word == "wait":
        for line in sys.stdin:
            if json.loads(line).get("method") == "session/cancel":
                return "cancelled"
        sys.exit(0)
    return "end_turn"


for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        capabilities = {"loadSession": "--load" in sys.argv}
        result = {"protocolVersion": 1, "agentCapabilities": capabilities, "authMethods": []}
    elif method == "session/new":
        name = f"own-{os.getpid()}-{len(sessions)}"
        sessions[name] = params["mcpServers"]
        result = {"sessionId": name}
    elif method == "session/load":
        sessions[params["sessionId"]] = params["mcpServers"]
        say(params["sessionId"], "what was said before")
        result = None
    elif method == "session/prompt":
        result = {"stopReason": prompt(params["sessionId"], params["prompt"])}
    elif "id" in message:
        send({"id": message["id"], "error": {"code": -32601, "message": f"no {method}"}})
        continue
    else:
        continue
    send({"id": message["id"], "result": result})
