"""Tools by which an agent tunes under a referee: looks at one half of the labels, and a verdict by the other."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import get_args

import msgspec

from steelyard.fusion import parse_strategy
from steelyard.retrievers import FETCHED
from steelyard.systems import find_system
from steelyard_eval.compare.referee import Part
from steelyard_eval.extensions.serve.tool_call import Arguments, Caller, Face, Json, declared, tools_of
from steelyard_eval.result.sentences import say
from steelyard_eval.views.frames import Answered

Compare = Callable[..., Answered]
PARTS: tuple[Part, ...] = get_args(Part)


def with_referee(face: Face, compare: Compare) -> Face:
    """The face with both tools over a data set; nothing of its texts or of single queries is told.

    `compare` is `Workbench.compare` of that data set.
    """
    added = tools_of(declared("referee")["tools"], [partial(answered, compare, part) for part in PARTS])
    return replace(face, tools=[*face.tools, *added])


def answered(compare: Compare, part: Part, caller: Caller, given: Arguments) -> Json:
    """The answer in words, and every configuration with its means and its test.

    A text that comes from an agent names a system or a strategy; files and endpoints are neither read nor asked.
    """
    for text in given["configurations"]:
        (parse_strategy if "(" in text or text in FETCHED else find_system)(text)
    found = compare(list(given["configurations"]), referee=part, timed=False).result
    rows = [msgspec.to_builtins(row) for row in found.rows]
    known = [{key: row[key] for key in ("label", "means", "against") if key in row} for row in rows]
    return {"answer": say(found.answer), "notes": [*map(say, found.answer.because)], "contenders": known}
