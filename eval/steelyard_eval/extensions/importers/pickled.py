"""Values in a pickle, without unpickling: plain values only, and of an object the attributes that were saved.

Unpickling calls whatever the file names. This reads the opcodes and makes dictionaries, lists, texts and numbers.
An object becomes a dictionary of its attributes; nothing is imported or called, and other opcodes are refused.
What a value shares with itself counts each time that it stands there: a few hundred bytes can share their way to
gigabytes, which whoever writes the value out again would pay for.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

from steelyard.base.errors import DataError
from steelyard.base.inputs import budget

MOST = 2_000_000
"""Opcodes of one value, and attributes that these copy from one object to another."""
DEEPEST = 64
"""Levels of a value, as in JSON."""
NUMBER = 8
"""Bytes that a number, a constant, and each place in a container count for."""
_MARK = object()
_PUSHED = frozenset(
    ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "BINFLOAT", "BININT", "BININT1", "BININT2", "LONG1")
)
_MADE: dict[str, Callable[[], object]] = {
    "MARK": lambda: _MARK,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": list,
    "EMPTY_SET": list,
}
_IGNORED = ("PROTO", "FRAME", "STOP")


class Unpacking:
    """Reads the pickles of one store, whose budget they share: that of a compressed file of as many bytes."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._given = self._spent = 0

    def plain(self, raw: bytes) -> Any:  # noqa: ANN401 -- whatever the file holds
        """The value; ValueError for a pickle that needs more than plain values, is cut short, or too deep.

        Raises DataError when all values so far are more, written out, than their bytes may unpack to.
        """
        stack, memo, work = list[Any](), list[Any](), 0
        try:
            for opcode, argument, _ in pickletools.genops(raw):
                work += 1 + (len(_state(stack[-1])) if opcode.name == "BUILD" else 0)
                if work > MOST:
                    raise ValueError("it is too long")
                _step(opcode.name, argument, stack, memo)
            value = stack.pop()
        except (IndexError, TypeError, AttributeError, KeyError) as error:
            raise ValueError(f"it is broken ({error})") from None
        self._given += len(raw)
        self._spent += _written_out(value, {})[0]
        if self._spent > budget(self._given):
            raise DataError(f"{self._place} has pickles that unpack to far more than they are; export it anew")
        return value


def _written_out(value: object, known: dict[int, tuple[int, int]], level: int = 1) -> tuple[int, int]:
    """Bytes and levels of a value in which everything shared is repeated; `known` has those of containers by id.

    ValueError for what is too deep, as everything is that stands in itself.
    """
    if isinstance(value, str | int):
        return len(value) if isinstance(value, str) else NUMBER + value.bit_length() // 3, 0
    if not isinstance(value, list | dict):
        return NUMBER, 0
    if id(value) not in known:
        if level > DEEPEST:
            raise ValueError("it is nested too deep")
        size, deep = NUMBER, 0
        for part in value if isinstance(value, list) else (*value.keys(), *value.values()):
            more, levels = _written_out(part, known, level + 1)
            size, deep = size + NUMBER + more, max(deep, levels)
        known[id(value)] = size, deep + 1
    if level + known[id(value)][1] > DEEPEST + 1:
        raise ValueError("it is nested too deep")
    return known[id(value)]


def _state(value: Any) -> dict[str, Any]:  # noqa: ANN401 -- whatever lies on the stack
    """The attributes that an object is given."""
    state = value.get("__dict__", value)
    if not isinstance(state, dict):
        raise TypeError("no attributes")
    return state


def _step(name: str, argument: Any, stack: list[Any], memo: list[Any]) -> None:  # noqa: ANN401 -- the opcode's own
    if name in _PUSHED:
        stack.append(argument)
    elif name in _MADE:
        stack.append(_MADE[name]())
    elif name == "MEMOIZE":
        memo.append(stack[-1])
    elif name in ("BINGET", "LONG_BINGET"):
        stack.append(memo[argument])
    elif name in ("APPEND", "APPENDS", "ADDITEMS"):
        items = [stack.pop()] if name == "APPEND" else _popped(stack)
        stack[-1].extend(items)
    elif name in ("SETITEM", "SETITEMS"):
        items = [stack.pop(), stack.pop()][::-1] if name == "SETITEM" else _popped(stack)
        if not all(isinstance(key, str) for key in items[::2]):  # numbers can be chosen so that they all collide
            raise TypeError("a key is no text")
        stack[-1].update(zip(items[::2], items[1::2], strict=True))
    elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
        size = int(name[-1])
        stack[-size:] = [stack[-size:]]
    elif name == "TUPLE":
        stack.append(_popped(stack))
    elif name == "STACK_GLOBAL":  # the name of a class: nothing is looked up
        stack[-2:] = [None]
    elif name == "NEWOBJ":
        stack[-2:] = [{}]
    elif name == "BUILD":
        state = _state(stack.pop())
        stack[-1].update(state)
    elif name not in _IGNORED:
        raise ValueError(f"it has the opcode {name}, which plain values do not need")


def _popped(stack: list[Any]) -> list[Any]:
    """What lies above the last mark, taken off with it; IndexError without one."""
    items = list[Any]()
    while (item := stack.pop()) is not _MARK:
        items.append(item)
    return items[::-1]
