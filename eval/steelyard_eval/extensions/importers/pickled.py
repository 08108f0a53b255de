"""Values in a pickle, without unpickling: plain values only, and of an object the attributes that were saved.

Unpickling calls whatever the file names. This reads the opcodes and makes dictionaries, lists, texts and numbers.
An object becomes a dictionary of its attributes; nothing is imported or called, and other opcodes are refused. Of
what a value shares with itself only texts are read, and count each time that they stand there: a few hundred bytes
can share their way to gigabytes, which whoever writes the value out again would pay for.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

from steelyard.base.errors import DataError
from steelyard.base.files import is_deep
from steelyard.base.inputs import budget

MOST = 2_000_000  # Opcodes of one value
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

        Raises DataError when the texts that all values so far share are more than their bytes may unpack to.
        """
        stack, memo = list[Any](), list[Any]()
        self._given += len(raw)
        try:
            for count, (opcode, argument, _) in enumerate(pickletools.genops(raw)):
                if count > MOST:
                    raise ValueError("it is too long")
                self._step(opcode.name, argument, stack, memo)
            value = stack.pop()
        except (IndexError, TypeError, AttributeError, KeyError) as error:
            raise ValueError(f"it is broken ({error})") from None
        if self._spent > budget(self._given):
            raise DataError(f"{self._place} has pickles that unpack to far more than they are; export it anew")
        if is_deep(value):
            raise ValueError("it is nested too deep")
        return value

    def _step(self, name: str, argument: Any, stack: list[Any], memo: list[Any]) -> None:  # noqa: ANN401 -- the opcode's own
        if name in _PUSHED:
            stack.append(argument)
        elif name in _MADE:
            stack.append(_MADE[name]())
        elif name == "MEMOIZE":
            memo.append(stack[-1])
        elif name in ("BINGET", "LONG_BINGET"):
            shared = memo[argument]
            if not isinstance(shared, str | None):
                raise ValueError("it shares what is no text")
            self._spent += len(shared or "")
            stack.append(shared)
        elif name in ("APPEND", "APPENDS", "ADDITEMS"):
            items = [stack.pop()] if name == "APPEND" else _popped(stack)
            stack[-1].extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = [stack.pop(), stack.pop()][::-1] if name == "SETITEM" else _popped(stack)
            if not all(
                isinstance(key, str) for key in items[::2]
            ):  # numbers can be chosen so that they all collide
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
            state = stack.pop()
            stack[-1].update(state.get("__dict__", state))
        elif name not in _IGNORED:
            raise ValueError(f"it has the opcode {name}, which plain values do not need")


def _popped(stack: list[Any]) -> list[Any]:
    """What lies above the last mark, taken off with it; IndexError without one."""
    items = list[Any]()
    while (item := stack.pop()) is not _MARK:
        items.append(item)
    return items[::-1]
