"""Reads `{"wire":"openai|responses|anthropic","url":"…","answers":n}`, one a line, and asks the model at that address
for n answers with the provider's own SDK. Says what each answer was, one a line, in words that all wires share.

Each answer is asked for twice: once event by event, each held against the SDK's type for it, which its client does
not do by itself; and once through the client's own accumulation.
"""

import json
import sys
from typing import Any

from pydantic import TypeAdapter


def chat(url: str):
    from openai import OpenAI
    from openai.types.chat import ChatCompletionChunk

    client = OpenAI(base_url=url, api_key="none", max_retries=0, timeout=60)
    ask: dict = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
    typed = TypeAdapter(ChatCompletionChunk)
    thinking = ""
    for chunk in client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}):
        hold(typed, chunk)
        # Not OpenAI's own: servers that show thoughts in this form agree on the field.
        thinking += "".join((choice.delta.model_extra or {}).get("reasoning_content", "") for choice in chunk.choices)
    with client.chat.completions.stream(**ask, stream_options={"include_usage": True}) as stream:
        for _ in stream:
            pass
        answer = stream.get_final_completion()
    choice = answer.choices[0]
    calls = [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
    usage = answer.usage
    return said(
        choice.message.content or "",
        thinking,
        calls,
        (usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens, usage.completion_tokens),
        {"stop": "end", "tool_calls": "tools"}[choice.finish_reason],
    )


def responses(url: str):
    from openai import OpenAI
    from openai.types.responses import ResponseStreamEvent

    client = OpenAI(base_url=url, api_key="none", max_retries=0, timeout=60)
    ask: dict = {"model": "m", "input": "?"}
    typed = TypeAdapter(ResponseStreamEvent)
    numbers = []
    for event in client.responses.create(**ask, stream=True):
        hold(typed, event)
        numbers.append(event.sequence_number)
    if numbers != list(range(len(numbers))):
        raise ValueError(f"the events are numbered {numbers}")
    texts, thoughts, arguments = "", "", {}
    with client.responses.stream(**ask) as stream:
        for event in stream:
            match event.type:
                case "response.output_text.delta":
                    texts += event.delta
                case "response.reasoning_summary_text.delta":
                    thoughts += event.delta
                case "response.function_call_arguments.delta":
                    # What the client put together of it so far.
                    arguments[event.output_index] = event.snapshot
        answer = stream.get_final_response()
    items = list(enumerate(answer.output))
    calls = [(item.call_id, item.name, item.arguments) for _, item in items if item.type == "function_call"]
    grown = [arguments[at] for at, item in items if item.type == "function_call"]
    if (texts, grown) != (answer.output_text, [call[2] for call in calls]):
        raise ValueError("the pieces do not make the whole")
    usage = answer.usage
    stop = "tools" if calls else "end"
    numbers = (usage.input_tokens, usage.input_tokens_details.cached_tokens, usage.output_tokens)
    return said(answer.output_text, thoughts, calls, numbers, stop if answer.status == "completed" else answer.status)


def anthropic(url: str):
    from anthropic import Anthropic
    from anthropic.types import RawMessageStreamEvent

    client = Anthropic(base_url=url.removesuffix("/v1"), api_key="none", max_retries=0, timeout=60)
    ask: dict = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "?"}]}
    typed = TypeAdapter(RawMessageStreamEvent)
    for event in client.messages.create(**ask, stream=True):
        hold(typed, event)
    with client.messages.stream(**ask) as stream:
        for _ in stream:
            pass
        answer = stream.get_final_message()
    blocks = answer.content
    usage = answer.usage
    before = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
    return said(
        "".join(block.text for block in blocks if block.type == "text"),
        "".join(block.thinking for block in blocks if block.type == "thinking"),
        [(block.id, block.name, json.dumps(block.input)) for block in blocks if block.type == "tool_use"],
        (before, usage.cache_read_input_tokens, usage.output_tokens),
        {"end_turn": "end", "tool_use": "tools"}[answer.stop_reason],
    )


def hold(typed: TypeAdapter, event: Any) -> None:
    """The event against its type: a field that is missing or of another type is an error."""
    typed.validate_json(json.dumps(event.to_dict()), strict=True)


def said(text: str, thinking: str, calls: list, usage: tuple, stop: str) -> dict:
    calls = [{"id": id, "name": name, "arguments": json.loads(arguments)} for id, name, arguments in calls]
    return {"text": text, "thinking": thinking, "calls": calls, "usage": usage, "stop": stop}


READERS = {"openai": chat, "responses": responses, "anthropic": anthropic}

for line in sys.stdin:
    asked = json.loads(line)
    for _ in range(asked["answers"]):
        print(json.dumps(READERS[asked["wire"]](asked["url"])), flush=True)
