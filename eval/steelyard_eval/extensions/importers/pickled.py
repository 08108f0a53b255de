"""Values in a pickle, without unpickling: plain values only, and of an object the attributes that were saved.

Unpickling calls whatever the file names. This reads the opcodes and makes dictionaries, lists, texts and numbers.
An object becomes a dictionary of its attributes; nothing is imported or called, and other opcodes are refused.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

MOST = 2_000_000
"""Opcodes of one value."""
_MARK = object()
_PUSHED = frozenset(
    ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "BINFLOAT", "BININT", "BININT1", "BININT2", "LONG1")
)
_CONSTANTS: dict[str, Callable[[], object]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_SET": list,
}
_IGNORED = frozenset(("PROTO", "FRAME"))


def plain(raw: bytes) -> object:
    """The value; ValueError for a pickle that needs more than plain values, or is cut short."""
    stack: list[object] = []
    memo: list[object] = []
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(raw)):
            if count > MOST:
                raise ValueError("it is too long")
            if opcode.name == "STOP":
                return stack.pop()
            _step(opcode.name, argument, stack, memo)
    except (IndexError, TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"it is broken ({error})") from None
    raise ValueError("it ends before its end")


def _step(name: str, argument: Any, stack: list[Any], memo: list[Any]) -> None:  # noqa: ANN401 -- the opcode's own
    if name in _PUSHED:
        stack.append(argument)
    elif name in _CONSTANTS:
        stack.append(_CONSTANTS[name]())
    elif name == "MARK":
        stack.append(_MARK)
    elif name == "MEMOIZE":
        memo.append(stack[-1])
    elif name in ("BINGET", "LONG_BINGET"):
        stack.append(memo[argument])
    elif name in ("APPENDS", "ADDITEMS"):
        items = _popped(stack)
        stack[-1].extend(items)
    elif name == "APPEND":
        item = stack.pop()
        stack[-1].append(item)
    elif name == "SETITEMS":
        items = _popped(stack)
        stack[-1].update(zip(items[::2], items[1::2], strict=True))
    elif name == "SETITEM":
        value, key = stack.pop(), stack.pop()
        stack[-1][key] = value
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
        state = stack.pop()
        stack[-1].update(state.get("__dict__", state))
    elif name not in _IGNORED:
        raise ValueError(f"it has the opcode {name}, which plain values do not need")


def _popped(stack: list[object]) -> list[object]:
    """What lies above the last mark, taken off with it."""
    mark = len(stack) - 1
    while stack[mark] is not _MARK:
        mark -= 1
        if mark < 0:
            raise IndexError("no mark")
    items = stack[mark + 1 :]
    del stack[mark:]
    return items
