"""Inputs that nobody meant: bytes and trees, changed a little in ways that parsers trip over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

# Longest input that is made: what is long for its own sake has tests of its own.
BYTES_MAX = 1 << 20
_NUMBERS = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    (1 << 63) - 1,
    (1 << 64) - 1,
]
_SCALARS: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    0.5,
    -0.0,
    1e308,
    float("inf"),
    float("nan"),
    (1 << 63) - 1,
    1 << 63,
    1 << 70,
    -(1 << 63),
    "",
    " ",
    "\0",
    "a",
    "\ud800",
    "\u202e",
    "ﷺ",
    "检索",
    "2030-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999+14:00",
    "0001-01-01T00:00:00-23:59",
    "0194f3a0-0000-7000-8000-000000000001",
    "x" * 600,
    [],
    {},
]


def mutated(data: bytes, chance: random.Random, tokens: Sequence[bytes], others: Sequence[bytes]) -> bytes:
    """`data` after one to eight changes."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(made) + 1)
        end = min(len(made), at + chance.choice((1, 2, 4, 8, 64, 4096)))
        match chance.randrange(9):
            case 0 if at < len(made):
                made[at] ^= 1 << chance.randrange(8)
            case 1 if at < len(made):
                made[at] = chance.randrange(256)
            case 2:
                del made[at:end]
            case 3:
                made[at:at] = made[at:end] * chance.choice((1, 2, 3, 100))
            case 4:
                made[at:at] = chance.choice(tokens)
            case 5:
                other = chance.choice(others)
                begin = chance.randrange(len(other) + 1)
                made[at:at] = other[begin : begin + chance.choice((1, 8, 64, 4096))]
            case 6:
                number, width = chance.choice(_NUMBERS), chance.choice((1, 2, 4, 8))
                made[at : at + width] = (number & ((1 << 8 * width) - 1)).to_bytes(
                    width, chance.choice(("big", "little"))
                )
            case 7 if chance.random() < 0.2:
                del made[at:]
            case _:
                made[at:at] = chance.choice(tokens) * chance.choice((2, 10, 500))
        del made[BYTES_MAX:]
    return bytes(made)


def bent(tree: Any, chance: random.Random, names: Sequence[str]) -> Any:
    """`tree` with one to four of its parts changed for something that fits less well."""
    made = json.loads(json.dumps(tree))
    for _ in range(chance.randint(1, 4)):
        holder, key = chance.choice(_places(made))
        part = holder[key]
        match chance.randrange(7):
            case 0:
                holder[key] = chance.choice(_SCALARS)
            case 1:
                holder[key] = [part] * chance.choice((1, 2, 70))
            case 2:
                holder[key] = {chance.choice(names): part}
            case 3 if isinstance(holder, dict):
                holder[chance.choice(names)] = holder.pop(key)
            case 4 if isinstance(holder, dict):
                holder[chance.choice(names)] = chance.choice(_SCALARS)
            case 5:
                nested = part
                for _ in range(chance.choice((3, 33, 70))):
                    nested = {chance.choice(names): nested} if chance.random() < 0.5 else [nested]
                holder[key] = nested
            case _:
                holder[key] = part * 2 if isinstance(part, str | int | list) else chance.choice(_SCALARS)
        if not isinstance(made, dict) or not made:
            return made
    return made


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every place in a tree that holds something."""
    found: list[tuple[Any, Any]] = []
    left = [tree]
    while left:
        holder = left.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                left.append(holder[key])
    return found
