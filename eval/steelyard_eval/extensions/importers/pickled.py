"""Values in a pickle, without unpickling: plain values only, and of an object the attributes that were saved.

Unpickling calls whatever the file names. This reads the opcodes and makes dictionaries, lists, texts and numbers.
An object becomes a dictionary of its attributes; nothing is imported or called, and other opcodes are refused. Of
what a value shares with itself only texts are read, and not many: a few hundred bytes can share their way to
gigabytes, which whoever writes the value out again would pay for.
"""

import pickletools
from typing import Any

from steelyard.base.files import is_deep

MAX_OPCODES = 2_000_000  # Opcodes of a value
SHARED = 100  # Characters of texts that are shared, a byte of the pickle
_MARK = object()
_PUSHED = frozenset(
    ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "BINFLOAT", "BININT", "BININT1", "BININT2", "LONG1")
)
_CONSTANTS = {"MARK": _MARK, "NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": list, "EMPTY_SET": list}
_IGNORED = ("PROTO", "FRAME", "STOP")


def plain(raw: bytes) -> Any:  # noqa: ANN401 -- whatever the file holds
    """The value; ValueError for a pickle that needs more than plain values, is cut short, too long or too deep."""
    stack, memo, shared = list[Any](), list[Any](), 0
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(raw)):
            if opcode.name == "MEMOIZE":
                memo.append(stack[-1])
            elif opcode.name in ("BINGET", "LONG_BINGET"):
                text = memo[int(argument or 0)]
                if not isinstance(text, str | None):
                    raise ValueError("it shares what is no text")
                shared += len(text or "")
                stack.append(text)
            else:
                _step(opcode.name, argument, stack)
            if count > MAX_OPCODES or shared > SHARED * len(raw):
                raise ValueError("it is too long")
        value = stack.pop()
    except (IndexError, TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"it is broken ({error})") from None
    if is_deep(value):
        raise ValueError("it is nested too deep")
    return value


def _step(name: str, argument: Any, stack: list[Any]) -> None:  # noqa: ANN401 -- the opcode's own
    if name in _PUSHED:
        stack.append(argument)
    elif name in _CONSTANTS:
        stack.append(_CONSTANTS[name])
    elif name in _EMPTY:
        stack.append(_EMPTY[name]())
    elif name in ("APPEND", "APPENDS", "ADDITEMS"):
        items = [stack.pop()] if name == "APPEND" else _popped(stack)
        stack[-1].extend(items)
    elif name in ("SETITEM", "SETITEMS"):
        items = [stack.pop(), stack.pop()][::-1] if name == "SETITEM" else _popped(stack)
        if not all(isinstance(key, str) for key in items[::2]):  # numbers can be chosen so that they all collide
            raise TypeError("a key is no text")
        stack[-1].update(zip(items[::2], items[1::2], strict=True))
    elif name in ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"):
        items = _popped(stack) if name == "TUPLE" else [stack.pop() for _ in range(int(name[-1]))][::-1]
        stack.append(items)
    elif name == "STACK_GLOBAL":  # the name of a class: nothing is looked up
        stack[-2:] = [None]
    elif name == "NEWOBJ":
        stack[-2:] = [{}]
    elif name == "BUILD":
        state = stack.pop()
        stack[-1].update(**state.get("__dict__", state))  # a list of pairs, with keys of any kind, is refused
    elif name not in _IGNORED:
        raise ValueError(f"it has the opcode {name}, which plain values do not need")


def _popped(stack: list[Any]) -> list[Any]:
    """What lies above the last mark, taken off with it; IndexError without one."""
    items = list[Any]()
    while (item := stack.pop()) is not _MARK:
        items.append(item)
    return items[::-1]
