"""Request bodies held against the SDKs' own parameter types, strictly."""

from functools import cache
from importlib import import_module
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

# For each wire where its types are, and what they are called; each in two forms, as a stream is asked for or not.
# Loaded when needed, because that takes a while.
BODIES = {
    "openai": ("openai.types.chat.completion_create_params", "CompletionCreateParams"),
    "responses": ("openai.types.responses.response_create_params", "ResponseCreateParams"),
    "anthropic": ("anthropic.types.message_create_params", "MessageCreateParams"),
}

# The fields that tell the members of a union apart.
TAGS = ("type", "role")


def errors(wire: str, body: Any) -> list[str]:
    """What the types refuse; nothing where all is well."""
    streams = isinstance(body, dict) and body.get("stream") is True
    try:
        validator(wire, "Streaming" if streams else "NonStreaming").validate_python([body], strict=True)
        return []
    except ValidationError as error:
        return told(error.errors(include_url=False, include_context=False))


@cache
def validator(wire: str, form: str) -> SchemaValidator:
    module, name = BODIES[wire]
    body = getattr(import_module(module), name + form)
    # In a list, because a typed dict by itself takes no configuration.
    types = TypeAdapter(list[body], config=ConfigDict(arbitrary_types_allowed=True))
    return SchemaValidator(strict(types.core_schema))


def strict(schema: Any) -> Any:
    """The same, with unknown keys refused, lists looked into at once, and no way around the parameter types."""
    if isinstance(schema, (list, tuple)):
        return type(schema)(map(strict, schema))
    if not isinstance(schema, dict):
        return schema
    schema = {key: strict(value) for key, value in schema.items()}
    match schema.get("type"):
        case "typed-dict":
            schema["extra_behavior"] = "forbid"
        case "generator":
            schema["type"] = "list"
        case "model":
            # A block of an earlier answer may be given as the object that it was, never as its keys.
            kept = {key: schema[key] for key in ("cls", "ref") if key in schema}
            return {"type": "is-instance", **kept}
    return schema


def told(errors: list[dict]) -> list[str]:
    """The errors in words, without those of union members that were never meant: their tag is another."""
    tags = [error for error in errors if error["type"] == "literal_error" and error["loc"][-1] in TAGS]

    def is_meant(error: dict) -> bool:
        within = (tag["loc"][:-1] for tag in tags if tag is not error)
        return not any(error["loc"][: len(other)] == other for other in within)

    meant = [error for error in errors if error not in tags and is_meant(error)]
    # Nor what has no keys, where keys were given.
    meant = [error for error in meant if error["type"] != "is_instance_of" and error["loc"][-1] != "str"]
    if not meant:
        # No member was meant: there is none with that tag.
        meant = [error for error in tags if is_meant(error)] or errors
        deepest = max(len(error["loc"]) for error in meant)
        meant = [error for error in meant if len(error["loc"]) == deepest]
    return [f"{place(error['loc'][1:])}: {error['msg']}" for error in meant]


def place(path: tuple) -> str:
    """Where it is: keys and numbers, without the names of the types tried (`User`, `list[…]`)."""
    return ".".join(str(step) for step in path if isinstance(step, int) or step.replace("_", "").islower())
