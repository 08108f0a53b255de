"""Types of documents are their reference: what is written fits them, and has no key that they do not declare."""

from typing import NotRequired, TypedDict

import pytest

import steelyard_eval as sy
from steelyard_eval.common.documents.gate import GateDocument
from steelyard_eval.common.documents.learn import LearnDocument
from steelyard_eval.common.documents.results import ResultsDocument
from steelyard_eval.common.documents.schema import rules_of, schema_of
from steelyard_eval.datasets.starter import starter
from steelyard_eval.gate.gating import Gate


def undeclared(value, rules, place=""):
    """The places of all keys that the rules of a type do not name."""
    if isinstance(value, dict):
        own, rest = rules.get("properties", {}), rules.get("additionalProperties")
        for key, item in value.items():
            if key in own or rest is not None:
                yield from undeclared(item, own.get(key, rest), f"{place}.{key}")
            elif rules:
                yield f"{place}.{key}"
    for item in value if isinstance(value, list) else ():
        yield from undeclared(item, rules.get("items", {}), f"{place}[]")


@pytest.fixture(scope="module")
def bench():
    return sy.load(starter())


JOBS = {
    "recommend": (ResultsDocument, lambda bench: bench.recommend("echovault", target="qdrant", timed=False)),
    "tune": (ResultsDocument, lambda bench: bench.tune("echovault", weights_only=True, timed=False)),
    "learn": (LearnDocument, lambda bench: bench.learn(labels=False)),
}


LONG = ("recommend", "learn")
"""Jobs that take half a minute."""


@pytest.mark.parametrize("job", [pytest.param(job, marks=[pytest.mark.nightly] * (job in LONG)) for job in JOBS])
def test_what_is_written_is_what_is_declared(bench, job):
    kind, done = JOBS[job]
    held_to(kind, done(bench).to_json())


def test_what_a_gate_writes_is_what_is_declared(bench, tmp_path):
    gate = Gate.of(bench.dataset, tmp_path / "baseline.json")
    gate.update(["bm25", "vector"], because="first")
    held_to(GateDocument, gate.check().to_json())


def held_to(kind, document):
    assert [*schema_of(kind).violations(document)] == []
    assert [*undeclared(document, rules_of(kind))] == []


class _Inner(TypedDict, total=False):
    value: int | None


class _Outer(_Inner):
    name: str
    rows: NotRequired[list[_Inner]]


def test_rules_of_a_type():
    """By JSON Schema: what is not total is not required, and None is null."""
    inner = {"type": "object", "properties": {"value": {"type": ["integer", "null"]}}}
    assert rules_of(_Outer) == {
        "type": "object",
        "properties": {
            **inner["properties"],
            "name": {"type": "string"},
            "rows": {"type": "array", "items": inner},
        },
        "required": ["name"],
    }
