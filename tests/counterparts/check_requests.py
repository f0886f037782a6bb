"""Reads `{"wire":"openai|responses|anthropic","body":{…}}`, one a line; says `{"ok":bool,"errors":[…]}` to each.

A body is right when the provider's own SDK would have made it: its types have a place for every key, and the rules
that no type says are kept.
"""

import json
import sys

import sdk_rules
import sdk_types

MOST = 12


def errors(wire: str, body: object) -> list[str]:
    # The rules are about bodies of the right type.
    return sdk_types.errors(wire, body) or sdk_rules.errors(wire, body)


for line in sys.stdin.buffer:
    asked = json.loads(line)
    found = errors(asked["wire"], asked["body"])
    print(json.dumps({"ok": not found, "errors": found[:MOST]}), flush=True)
