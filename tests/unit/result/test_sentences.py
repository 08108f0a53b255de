"""Every sentence about a result stands in result/sentences: a fence around it, and one snapshot of all of them."""

import ast
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from steelyard_eval.result.sentences import HEADINGS, SENTENCES, filled
from steelyard_eval.result.structs import Estimate

EVAL = Path(__file__).parents[3] / "eval" / "steelyard_eval"
WORD = re.compile(r"(?<![\w.@/-])[A-Za-z][a-z']+(?![\w(=/-])")
CODE = re.compile(r"<[^>]*>|\{[{%#].*?[%}#]\}|\\[A-Za-z]+(\{[^}]*\})?", re.DOTALL)
"""Tags of HTML, of Jinja, commands of LaTeX: scaffolding, no words."""
EXEMPT = {"option", "argument", "command", "group", "Choice", "help", "compile", "getLogger"}
SNAPSHOT = Path(__file__).parent / "said.json"
TEMPLATES = {"sentences": SENTENCES, "headings": HEADINGS}
TABLES = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
NOT_YET = TABLES["NOT_YET"]
"""Folders with sentences that are not among those of results: how many, which may only become fewer."""
VALUES = TABLES["VALUES"] | {form: Estimate(*numbers) for form, numbers in TABLES["ESTIMATES"].items()}
"""What a fact is in the snapshot, by its form; of a form that is not here the name of the fact."""
FACT = re.compile(r"\{(\w+)(?::(\w+))?\}|<<\?(\w+):")


def said(template):
    """A template with a value for each of its facts."""
    facts = {name or flag: VALUES.get(form or "as_is", name) for name, form, flag in FACT.findall(template)}
    return filled(template, {name: value or True for name, value in facts.items()})


def printed():
    return {kind: {key: said(text) for key, text in templates.items()} for kind, templates in TEMPLATES.items()}


def sentences(source):
    """How many texts of three words and more are no docstrings, errors or help."""
    tree = ast.parse(source)
    skipped = {id(node) for part in ast.walk(tree) if is_exempt(part) for node in ast.walk(part)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in skipped)
    return sum(isinstance(text.value, str) and len(WORD.findall(CODE.sub(" ", text.value))) > 2 for text in texts)


def is_exempt(node):
    """What stands alone is a docstring; calls whose texts are help or patterns, and errors."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name in EXEMPT or name.endswith("Error")
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def elsewhere():
    """How many sentences stand in each folder but that of sentences."""
    counts = Counter()
    for path in sorted(EVAL.rglob("*.py")):
        place = path.relative_to(EVAL)
        if place.parts[:2] != ("result", "sentences"):
            counts[place.parts[0]] += sentences(path.read_text(encoding="utf-8"))
    return {folder: count for folder, count in counts.items() if count}


def test_no_sentence_of_a_result_stands_elsewhere():
    found = elsewhere()
    assert {folder: count for folder, count in found.items() if count > NOT_YET.get(folder, 0)} == {}


def test_every_sentence_is_as_the_snapshot_has_it():
    """Written anew by `python -m tests.unit.result.test_sentences`; its diff is what a reviewer reads."""
    assert printed() == json.loads(SNAPSHOT.read_text("utf-8"))


def test_every_key_that_code_names_has_a_template():
    named = re.compile(r"\b(?:Said|Answer|Step|Blocker|judging|drawing|using)\(\s*(?:dataset, )?\"(\w+)\"")
    keys = {key for path in EVAL.rglob("*.py") for key in named.findall(path.read_text("utf-8"))}
    assert len(keys) > 30
    assert keys <= SENTENCES.keys() | {""}


def test_values_are_put_in_as_they_are_and_unknown_ones_leave_their_part_out():
    assert filled("{a}<< and {b}>><<?c: or c>>", {"a": "{b}<<x>>"}) == "{b}<<x>>"
    assert filled("{a}<< and {b}>><<?c: or c>>", {"a": 1, "b": 2, "c": True}) == "1 and 2 or c"
    assert filled("<<?c:{a}>>", {"c": False, "a": 1}) == ""
    with pytest.raises(KeyError):
        filled("{a}", {"a": None})


def test_the_fence_sees_sentences_and_neither_errors_nor_docstrings():
    assert sentences('x = f"{a} is better than {b}"\nclick.echo("nothing was found")') == 2
    assert sentences('"""A docstring of words."""\nraise ConfigError("name at least one")') == 0


if __name__ == "__main__":
    SNAPSHOT.write_text(json.dumps(printed(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
