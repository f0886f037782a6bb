"""An ACP agent that does what its first argument says. It speaks the protocol by hand, so that both sides
cannot be wrong in the same way."""

import json
import os
import subprocess
import sys
import time

WAY = sys.argv[1]
SESSION = "s-1"
cancelled = False
last = 100


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(to, result):
    send({"id": to["id"], "result": result})


def refuse(to, code, message, data=None):
    send({"id": to["id"], "error": {"code": code, "message": message, "data": data}})


def update(told, session=SESSION, **fields):
    params = {"sessionId": session, "update": {"sessionUpdate": told, **fields}}
    send({"method": "session/update", "params": params})


def say(text, **more):
    update("agent_message_chunk", content={"type": "text", "text": text}, **more)


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def ask(method, params, session=SESSION):
    """Asks the host, and gives its whole response. Notes when the turn is called off meanwhile."""
    global cancelled, last
    last += 1
    send({"id": last, "method": method, "params": {"sessionId": session, **params}})
    return wait_for(last)


def wait_for(number):
    global cancelled
    while True:
        message = receive()
        if message.get("method") == "session/cancel":
            cancelled = True
        elif "method" not in message and message.get("id") == number:
            return message


def wait_for_cancel():
    while receive().get("method") != "session/cancel":
        pass


def tell(response):
    """Says what the host answered, so that the test can see it."""
    say(json.dumps(response.get("result", response.get("error")), sort_keys=True))


def child():
    """A process that outlives this one if nobody ends it, and leaves the group."""
    started = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    say(f"pid {started.pid}")
    return started


def prompt(request):
    global cancelled
    text = request["params"]["prompt"][0].get("text", "")
    reason = "end_turn"
    if WAY == "good":
        update("agent_thought_chunk", content={"type": "text", "text": "Let me "})
        update("agent_thought_chunk", content={"type": "text", "text": "see."})
        update("plan", entries=[{"content": "Look", "priority": "high", "status": "pending"}])
        say("Looking")
        say(" now.")
        update("tool_call", toolCallId="c1", title="Read a.txt", kind="read", status="pending", rawInput={"path": "a.txt"})
        update("tool_call_update", toolCallId="c1", status="in_progress")
        update("tool_call_update", toolCallId="c1", status="completed", content=[{"type": "content", "content": {"type": "text", "text": "alpha"}}])
        say("It says alpha.")
        answer(request, {"stopReason": reason, "usage": {"totalTokens": 3, "inputTokens": 2, "outputTokens": 1}})
        return
    if WAY == "echo":
        say(text)
    elif WAY == "dies":
        say("half a")
        print("out of memory: sk-abcdefghijklmnopqrstuv", file=sys.stderr, flush=True)
        os._exit(3)
    elif WAY == "closes":
        os.close(1)
        time.sleep(1000)
    elif WAY == "closes_input":
        os.close(0)
        time.sleep(1000)
    elif WAY == "waits":
        say("working")
        wait_for_cancel()
        reason = "cancelled"
    elif WAY == "deaf":
        say("working")
        while True:
            time.sleep(1)
    elif WAY == "floods":
        big = "x" * 100_000
        for _ in range(5_000):
            say(big)
    elif WAY == "floods_requests":
        for number in range(1, 301):
            send({"id": number, "method": "session/request_permission", "params": permission()})
        seen = {"answered": 0, "refused": 0}
        for _ in range(300):
            message = receive()
            seen["refused" if "error" in message else "answered"] += 1
        say(json.dumps(seen))
    elif WAY == "long_line":
        sys.stdout.write('{"jsonrpc":"2.0","method":"session/update","params":"')
        for _ in range(400):
            sys.stdout.write("x" * 100_000)
        sys.stdout.flush()
        time.sleep(1000)
    elif WAY == "crowded":
        sys.stdout.write('{"jsonrpc":"2.0","id":1,"result":[' + "0," * 2_000_000 + "0]}\n")
        sys.stdout.flush()
        time.sleep(1000)
    elif WAY == "deep":
        sys.stdout.write('{"jsonrpc":"2.0","id":3,"result":' + "[" * 100_000 + "]" * 100_000 + "}\n")
        sys.stdout.flush()
        time.sleep(1000)
    elif WAY == "noise":
        print("npm warn something")
        print("[1, 2]")
        print('{"level": "info"}')
        send({"id": 4711, "result": {"stopReason": "refusal"}})
        send({"id": "3", "result": {"stopReason": "refusal"}})
        send({"id": None, "result": {}})
        send({"method": "session/unheard_of", "params": {}})
        for odd in ([], "text", 5, None, {"sessionId": SESSION}, {"sessionId": SESSION, "update": [1]}):
            send({"method": "session/update", "params": odd})
            send({"id": 50, "method": "session/request_permission", "params": odd})
            wait_for(50)
        update("agent_message_chunk", session="of-somebody-else", content={"type": "text", "text": "lie"})
        say("fine")
        answer(request, {"stopReason": reason})
        # The same answer again, with another reason, and to something else.
        answer(request, {"stopReason": "refusal"})
        return
    elif WAY == "babble":
        while True:
            print("this is no protocol")
    elif WAY == "permission":
        tell(ask("session/request_permission", permission()))
        if cancelled:
            reason = "cancelled"
    elif WAY == "same_id":
        for _ in range(2):
            send({"id": 7, "method": "session/request_permission", "params": permission()})
        for _ in range(2):
            tell(wait_for(7))
    elif WAY == "asks":
        for method, params, *session in json.loads(text):
            tell(ask(method, params, *session))
    elif WAY == "terminals":
        run(json.loads(text))
    elif WAY == "child":
        child()
        wait_for_cancel()
        reason = "cancelled"
    elif WAY == "no_reason":
        answer(request, {})
        return
    elif WAY == "refuses":
        refuse(request, -32603, "Internal error", {"details": "the model is gone"})
        return
    elif WAY == "script":
        for step in json.loads(text):
            if "update" in step:
                params = {"sessionId": SESSION, "update": step["update"]}
                send({"method": "session/update", "params": params})
            elif "ask" in step:
                tell(ask(step["ask"], step["params"]))
            elif "die" in step:
                print(step["die"], file=sys.stderr, flush=True)
                os._exit(3)
            else:
                reason = step["stop"]
    elif WAY == "env":
        say(json.dumps(dict(os.environ)))
    answer(request, {"stopReason": reason})


def run(commands):
    """Runs each command in a terminal, and tells its end and output."""
    for params in commands:
        wait = params.pop("wait", True)
        kill = params.pop("kill", False)
        created = ask("terminal/create", params)
        if "error" in created:
            tell(created)
            continue
        terminal = {"terminalId": created["result"]["terminalId"]}
        if kill:
            ask("terminal/kill", terminal)
        if wait:
            tell(ask("terminal/wait_for_exit", terminal))
            tell(ask("terminal/output", terminal))
            ask("terminal/release", terminal)
            tell(ask("terminal/output", terminal))


def permission():
    options = [
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ]
    call = {"toolCallId": "c9", "title": "rm -rf build", "kind": "execute", "rawInput": {"command": "rm"}}
    return {"sessionId": SESSION, "toolCall": call, "options": options}


def initialize(request):
    if WAY == "hangs":
        time.sleep(1000)
    if WAY == "fails":
        print("no configuration file", file=sys.stderr)
        sys.exit(2)
    version = {"version_2": 2, "version_text": "1"}.get(WAY, 1)
    can = {"loadSession": WAY == "loads", "promptCapabilities": {"image": True}}
    if WAY == "takes_system":
        can["sessionCapabilities"] = {"systemPrompt": {}}
    methods = []
    if WAY in ("auth", "auth_key"):
        methods = [{"id": "browser", "name": "Log in with a browser"}, {"id": "key", "name": "Use a key"}]
    answer(request, {
        "protocolVersion": version,
        "agentCapabilities": can,
        "agentInfo": {"name": "scripted", "version": "1.2"},
        "authMethods": methods,
    })


def main():
    signed_in = False
    while True:
        request = receive()
        method = request.get("method")
        if method == "initialize":
            if WAY == "older" and "--older" not in sys.argv:
                sys.exit("unknown argument")
            with open("initialize.json", "w") as file:
                json.dump(request["params"], file)
            initialize(request)
        elif method == "authenticate":
            if request["params"]["methodId"] == "key":
                signed_in = True
                answer(request, {})
            else:
                refuse(request, -32603, "nobody is there")
        elif method == "session/new":
            with open("new.json", "w") as file:
                json.dump(request["params"], file)
            if WAY == "hangs_new":
                time.sleep(1000)
            if WAY in ("auth", "auth_key") and not signed_in:
                refuse(request, -32000, "Authentication required")
            elif WAY == "no_id":
                answer(request, {"sessionId": 5})
            else:
                answer(request, {"sessionId": SESSION})
        elif method == "session/load":
            update("user_message_chunk", session=request["params"]["sessionId"], content={"type": "text", "text": "hello"})
            update("agent_message_chunk", session=request["params"]["sessionId"], content={"type": "text", "text": "hi"})
            answer(request, None)
        elif method == "session/prompt":
            prompt(request)


main()
