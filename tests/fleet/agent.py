"""An ACP agent without a model: it does what its prompts say.

`say TEXT`        says it
`context`         says the first block of its first prompt
`canvas HTML`     shows it, through the MCP server that it was given
`tools`           says which tools that server has
`again`           calls the tool once more, over the connection that is open
`ask`             asks for permission, and says what was answered
`shell CMD`       announces a command, asks for it by the tool's name alone, and says what was answered
`own`             asks about its canvas, and says what was answered
`disguised CMD`   asks whether it may run a command, and calls that its canvas
`child`           starts a process that ignores being told to end, and says its number
`wait REASON`     does nothing until it is called off, and ends with this or `cancelled`
`fail`            answers the prompt with an error
`silent`          ends its turn without a word
`told`            says what stood before this prompt, and what its session began with
`here CMD`        runs a command itself, and says what it printed
`there CMD`       has us run it, and does the same
`work CMD`        tells of calls as agents of several makes do, one of which runs a command
`flood N KIB`     says N updates of so many KiB, and then `done`
`crash`           ends at once
`env`             says its environment
`terminal CMD`    has us run a command, and says what it printed
`leak`            says its token in every place and spelling that it knows, and ends with it
`leak-and-crash`  ends at once, with its token as its last words
`## …`            a task behind what it is told: says what it did
"""
import json
import os
import subprocess
import sys

sessions = {}
began = {}
told = []
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


def ask(session, call):
    global number
    number += 1
    options = [
        {"optionId": "ever", "name": "Always", "kind": "allow_always"},
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    params = {"sessionId": session, "toolCall": call, "options": options}
    send({"id": f"q{number}", "method": "session/request_permission", "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == f"q{number}":
            return json.dumps(message.get("result", message.get("error")))
    sys.exit(0)


def tell(session, **update):
    send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def answer_to(id, session, method, params):
    send({"id": id, "method": method, "params": {"sessionId": session, **params}})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == id and "method" not in message:
            return message.get("result", message.get("error"))
    sys.exit(0)


def token_of(session):
    server = next(s for s in sessions[session] if s["name"] == "contexture")
    file = next(e["value"] for e in server["env"] if e["name"] == "CONTEXTURE_SESSION_TOKEN_FILE")
    with open(file) as kept:
        return kept.read()


def remember(params):
    """Keeps a session as agents do: in a file that anybody reads, and in a command line."""
    kept = json.dumps(params)
    with open(os.path.join(os.environ["HOME"], "agent-sessions"), "a") as sessions:
        print(kept, file=sessions)
    wait = "import sys; sys.stdin.read()"
    subprocess.Popen([sys.executable, "-c", wait, "--mcp-config", kept], stdin=subprocess.PIPE)


def run_here(command):
    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout


def run_there(session, command):
    """Has the host run a command, and gives its terminal and what it printed. The terminal is released."""
    created = answer_to("t1", session, "terminal/create", {"command": command})
    answer_to("t2", session, "terminal/wait_for_exit", created)
    output = answer_to("t3", session, "terminal/output", created)["output"]
    answer_to("t4", session, "terminal/release", created)
    return created["terminalId"], output


def work(session, rest):
    """Calls as agents of several makes tell of them."""
    shown = lambda id: [{"type": "terminal", "terminalId": id}]
    # As goose does: the host's terminal, shown and released before the call ends.
    tell(session, sessionUpdate="tool_call", toolCallId="w1", title="shell", kind="execute", status="pending")
    created = answer_to("t1", session, "terminal/create", {"command": rest})
    tell(session, sessionUpdate="tool_call_update", toolCallId="w1", status="in_progress", content=shown(created["terminalId"]))
    answer_to("t2", session, "terminal/wait_for_exit", created)
    answer_to("t3", session, "terminal/release", created)
    tell(session, sessionUpdate="tool_call_update", toolCallId="w1", status="completed")
    # As codex and pi do: a terminal of their own, told in pieces.
    tell(session, sessionUpdate="tool_call", toolCallId="w2", name="mcp.shop:list.orders", title="x", status="in_progress", content=shown("w2"))
    for piece in ("one\n", "two\n"):
        output = {"terminal_id": "w2", "data": piece}
        tell(session, sessionUpdate="tool_call_update", toolCallId="w2", _meta={"terminal_output_delta": output})
    exit = {"terminal_id": "w2", "exit_code": 0, "signal": None}
    tell(session, sessionUpdate="tool_call_update", toolCallId="w2", status="completed", _meta={"terminal_exit": exit})
    say(session, "worked")


def spellings(token):
    return [
        token,
        token.upper(),
        "".join(f"%{ord(c):02x}" for c in token),
        "".join(f"\\u{ord(c):04x}" for c in token),
        "".join(f"&#x{ord(c):x};" for c in token),
        json.dumps(json.dumps({token: token})),
        "-".join(token[n : n + 8] for n in range(0, 64, 8)),
    ]


def leak(session):
    token = token_of(session)
    for spelled in spellings(token):
        for cut in (1, len(spelled) // 2, len(spelled) - 1):
            say(session, f"\nIt is {spelled[:cut]}")
            say(session, spelled[cut:])
    for c in token:
        say(session, c)
    for n, key in enumerate(("terminal_output", "terminal_output_delta")):
        tell(session, sessionUpdate="tool_call", toolCallId=f"p{n}", title="x", status="pending")
        for c in token + "\nand more":
            output = {"terminal_id": f"p{n}", "data": c}
            tell(session, sessionUpdate="tool_call_update", toolCallId=f"p{n}", _meta={key: output})
        tell(session, sessionUpdate="tool_call_update", toolCallId=f"p{n}", status="completed")
    for n, spelled in enumerate(spellings(token)):
        thought = {"type": "text", "text": spelled}
        tell(session, sessionUpdate="agent_thought_chunk", content=thought)
        call = {"toolCallId": f"{n}-{spelled}"[:150], "title": spelled, "kind": spelled}
        tell(session, sessionUpdate="tool_call", **call, rawInput={spelled: [spelled]}, locations=[{"path": spelled}])
        shown = [{"type": "content", "content": {"type": "text", "text": spelled}}]
        output = {"output": spelled, spelled: 1}
        tell(session, sessionUpdate="tool_call_update", toolCallId=call["toolCallId"], status="completed", content=shown, rawOutput=output)
        tell(session, sessionUpdate="plan", entries=[{"content": spelled, "priority": "high", "status": "pending"}])
        tell(session, sessionUpdate=spelled, **{spelled: spelled})
    options = [
        {"optionId": token, "name": token.upper(), "kind": "allow_once"},
        {"optionId": "no", "name": token, "kind": token},
    ]
    call = {"toolCallId": token, "title": token, "rawInput": {token: token}}
    answer_to("leak", session, "session/request_permission", {"toolCall": call, "options": options})
    tools = ours(session)
    html = "".join(f"<p>{spelled}</p>" for spelled in spellings(token))
    tools.ask("tools/call", {"name": "canvas_update", "arguments": {"html": html, "title": token.upper()}})
    tools.ask("tools/call", {"name": "canvas_update", "arguments": {"html": "<p>", token: token}})
    tools.ask("tools/call", {"name": token, "arguments": {token.upper(): token}})
    say(session, " the end")
    return token


def prompt(session, blocks):
    global told
    text = blocks[-1]["text"]
    told = [block["text"] for block in blocks[:-1]]
    first.setdefault(session, blocks[0]["text"])
    word, _, rest = text.partition(" ")
    if word == "say":
        say(session, rest)
    elif word == "told":
        say(session, json.dumps({"prompt": told, "session": began.get(session)}))
    elif word == "here":
        say(session, run_here(rest))
    elif word == "there":
        say(session, run_there(session, rest)[1])
    elif word == "work":
        work(session, rest)
    elif word == "context":
        say(session, first[session])
    elif word == "canvas":
        say(session, json.dumps(ours(session).ask("tools/call", {"name": "canvas_update", "arguments": {"html": rest, "title": "A title"}})))
    elif word == "tools":
        say(session, json.dumps(ours(session).ask("tools/list", {})))
    elif word == "again":
        say(session, json.dumps(ours(session).ask("tools/call", {"name": "canvas_clear", "arguments": {}})))
    elif word == "ask":
        say(session, ask(session, {"toolCallId": "c1", "title": "rm -rf build"}))
    elif word == "shell":
        call = {"toolCallId": "c2", "title": "shell", "kind": "other"}
        tell(session, sessionUpdate="tool_call", **call, rawInput={"command": rest, "timeout": 7})
        # As a model that is asked for a title may put it.
        tell(session, sessionUpdate="tool_call_update", toolCallId="c2", title="List files")
        say(session, ask(session, call))
    elif word == "own":
        say(session, ask(session, {"toolCallId": "c3", "title": "contexture: canvas_update", "kind": "other"}))
    elif word == "disguised":
        call = {"toolCallId": "c4", "title": "contexture: canvas_update", "kind": "other"}
        say(session, ask(session, {**call, "rawInput": {"command": rest}}))
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
    elif word == "env":
        say(session, json.dumps(dict(os.environ)))
    elif word == "terminal":
        created = answer_to("t1", session, "terminal/create", {"command": rest})
        answer_to("t2", session, "terminal/wait_for_exit", created)
        say(session, answer_to("t3", session, "terminal/output", created)["output"])
    elif word == "leak":
        return leak(session)
    elif word == "leak-and-crash":
        print("last words:", token_of(session), token_of(session).upper(), file=sys.stderr, flush=True)
        os._exit(3)
    elif word == "crash":
        os._exit(3)
    elif word == "wait":
        for line in sys.stdin:
            if json.loads(line).get("method") == "session/cancel":
                return rest or "cancelled"
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
        began[name] = params.get("_meta")
        if "--remember" in sys.argv:
            remember(params)
        if "--tokens" in sys.argv:
            with open(sys.argv[sys.argv.index("--tokens") + 1], "a") as known:
                print(token_of(name), file=known)
        result = {"sessionId": name}
    elif method == "session/load":
        sessions[params["sessionId"]] = params["mcpServers"]
        began[params["sessionId"]] = params.get("_meta")
        say(params["sessionId"], "what was said before")
        result = None
    elif method == "session/prompt":
        reason = prompt(params["sessionId"], params["prompt"])
        if params["prompt"][-1]["text"] == "fail" or reason == "error":
            send({"id": message["id"], "error": {"code": -32603, "message": "it broke"}})
            continue
        result = {"stopReason": reason}
    elif "id" in message:
        send({"id": message["id"], "error": {"code": -32601, "message": f"no {method}"}})
        continue
    else:
        continue
    send({"id": message["id"], "result": result})
