"""What providers enforce and no type says."""

import json
import re
from typing import Any, Iterator

Found = Iterator[str]


def errors(wire: str, body: dict) -> list[str]:
    """The rules that a body breaks. It is of the right type already."""
    return list({"openai": chat, "responses": responses, "anthropic": anthropic}[wire](body))


def chat(body: dict) -> Found:
    yield from options(body)
    for tool in body.get("tools", []):
        yield from named(tool[tool["type"]]["name"], 64, "tools")
    if not body["messages"]:
        yield "messages: there is none"
    waiting: list[str] = []
    for at, message in enumerate(body["messages"]):
        where = f"messages.{at}"
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"{where}: answers no call of the message before it"
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"{where}: comes before the answers to {waiting}"
        calls = message.get("tool_calls", [])
        waiting = [call["id"] for call in calls]
        if len(set(waiting)) < len(waiting):
            yield f"{where}: calls share an id"
        for call in calls:
            if not 1 <= len(call["id"]) <= 40:
                yield f"{where}: the id of a call has {len(call['id'])} characters"
            yield from named(call[call["type"]]["name"], 64, where)
            if call["type"] == "function":
                yield from is_object(call["function"]["arguments"], where)
        if message["role"] == "assistant" and not calls and not message.get("content"):
            yield f"{where}: an assistant says nothing"
        if message.get("content") == []:
            yield f"{where}: no part of content"
        if not re.fullmatch(r"[^\s<|\\/>]{1,64}", message.get("name", "x")):
            yield f"{where}: a name that is refused"
    if waiting:
        yield f"messages: {waiting} are never answered"


def responses(body: dict) -> Found:
    yield from options(body)
    for tool in body.get("tools", []):
        yield from named(tool.get("name", "x"), 64, "tools")
    if not body["input"]:
        yield "input: there is none"
    used: set[str] = set()
    waiting: dict[str, str] = {}
    thoughts: set[str] = set()
    for at, item in enumerate(body["input"]):
        where, kind = f"input.{at}", item.get("type", "message")
        if kind in ("function_call", "custom_tool_call"):
            yield from named(item["call_id"], 64, where)
            yield from named(item["name"], 64, where)
            if item["call_id"] in used:
                yield f"{where}: the id of an earlier call"
            if kind == "function_call":
                yield from is_object(item["arguments"], where)
            used.add(item["call_id"])
            waiting[item["call_id"]] = f"{kind}_output"
        elif kind.endswith("_output"):
            if waiting.pop(item["call_id"], None) != kind:
                yield f"{where}: answers no call before it"
        elif kind == "reasoning":
            if item.get("id") in thoughts:
                yield f"{where}: the id of an earlier thought"
            thoughts |= {item["id"]} if "id" in item else set()
            # Without what came of it, it is refused.
            follows = body["input"][at + 1] if at + 1 < len(body["input"]) else {}
            made = follows.get("type") in ("reasoning", "function_call", "custom_tool_call")
            if not made and follows.get("role") != "assistant":
                yield f"{where}: nothing came of this thought"
        elif not item["content"]:
            yield f"{where}: nothing is said"
    if waiting:
        yield f"input: {list(waiting)} are never answered"


def options(body: dict) -> Found:
    """Options of OpenAI that go with others only."""
    if "tools" in body and not 1 <= len(body["tools"]) <= 128:
        yield f"tools: {len(body['tools'])} of them"
    for option in ("tool_choice", "parallel_tool_calls"):
        if option in body and not body.get("tools"):
            yield f"{option}: without tools"
    if "stream_options" in body and not body.get("stream"):
        yield "stream_options: without a stream"


def anthropic(body: dict) -> Found:
    names = [tool["name"] for tool in body.get("tools", []) if "name" in tool]
    for name in names:
        yield from named(name, 128, "tools")
    if len(set(names)) < len(names):
        yield "tools: two have one name"
    if "tool_choice" in body and not body.get("tools"):
        yield "tool_choice: without tools"
    if body["max_tokens"] < 1:
        yield "max_tokens: below 1"
    if marks(body) > 4:
        yield "cache_control: more than 4"
    if isinstance(body.get("system"), list):
        yield from spoken(body["system"], "system")
    if not body["messages"] or body["messages"][0]["role"] != "user":
        yield "messages.0: not the user's"
    used: set[str] = set()
    waiting: set[str] = set()
    for at, (role, blocks) in enumerate(turns(body["messages"])):
        where = f"turn {at}"
        yield from spoken(blocks, where)
        answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        kinds = [block["type"] for block in blocks]
        if role == "user":
            if set(answers) != waiting or len(set(answers)) < len(answers):
                yield f"{where}: answers {answers}, asked were {sorted(waiting)}"
            if any(kind == "tool_result" for kind in kinds[len(answers) :]):
                yield f"{where}: a tool_result is not among the first blocks"
            yield from (f"{where}: {kind} of a user" for kind in kinds if "thinking" in kind or kind == "tool_use")
            waiting = set()
            continue
        if waiting:
            yield f"{where}: {sorted(waiting)} are not answered before it"
        yield from (f"{where}: {kind} of an assistant" for kind in kinds if kind in ("tool_result", "image", "document"))
        asked = [block for block in blocks if block["type"] == "tool_use"]
        for call in asked:
            yield from named(call["id"], 64, where)
            yield from named(call["name"], 128, where)
            if call["id"] in used:
                yield f"{where}: the id of an earlier call"
            used.add(call["id"])
        waiting = {call["id"] for call in asked}
        if asked and "thinking" in "".join(kinds[kinds.index("tool_use") :]):
            yield f"{where}: a thought behind a call"
        if "thinking" in kinds[-1]:
            yield f"{where}: it ends with a thought"
    if waiting:
        yield f"messages: {sorted(waiting)} are never answered"
    if role == "assistant" and (end := blocks[-1].get("text", "")) != end.rstrip():
        yield "messages: the last words end with white space"


def turns(messages: list[dict]) -> list[tuple[str, list[dict]]]:
    """As the API reads them: what one side says in a row is one turn."""
    read: list[tuple[str, list[dict]]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if read and read[-1][0] == message["role"]:
            read[-1][1].extend(blocks)
        else:
            read.append((message["role"], list(blocks)))
    return read


def spoken(blocks: list[dict], where: str) -> Found:
    if not blocks:
        yield f"{where}: without a block"
    for block in blocks:
        if block["type"] == "text" and not block["text"].strip():
            yield f"{where}: a blank text"
        if block["type"] == "thinking" and not block["signature"].strip():
            yield f"{where}: a thought without its signature"
        if "thinking" in block["type"] and "cache_control" in block:
            yield f"{where}: a thought that is marked for the cache"
        if block["type"] == "tool_result" and isinstance(block.get("content"), list):
            yield from spoken(block["content"], where)
        if block["type"] == "tool_result" and block.get("is_error") and not block.get("content"):
            yield f"{where}: a failure that says nothing"


def marks(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(marks, value))
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(marks(inner) for key, inner in value.items() if key != "input")
    return 0


def named(name: str, most: int, where: str) -> Found:
    if not re.fullmatch(rf"[a-zA-Z0-9_-]{{1,{most}}}", name):
        yield f"{where}: a name that is refused: {name[:80]!r}"


def is_object(text: str, where: str) -> Found:
    try:
        if isinstance(json.loads(text), dict):
            return
    except ValueError:
        pass
    yield f"{where}: arguments that are no JSON object"
