"""The result of a gate as JUnit XML, one test case a contender."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from steelyard.base.errors import visible
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Cell, Estimate, Result
from steelyard_eval.views.sheets import triple

SUITE = "steelyard.gate"


def render(result: Result, strict: bool = False, date: str = "1970-01-01") -> str:
    """The document, with its declaration; valid by the schemas of Ant and of Jenkins, which differ.

    Fail and mismatch are failures. Inconclusive is a failure where it counts as one; else the case is skipped,
    which test reports show.
    """
    cases = [_case(result, row, strict) for row in result.table("gated")] or [_mismatch(result)]
    return _document(cases, result.provenance.data.name, date, say(result.answer))


def undecided(error: str, date: str = "1970-01-01") -> str:
    """The document of a gate that an error ended: a case with the message, as an error and no failure."""
    case, message = _test("gate"), visible("; ".join(error.splitlines()))
    ElementTree.SubElement(case, "error", {"message": message, "type": "undecided"})
    return _document([case], SUITE, date, message)


def _document(cases: Sequence[ElementTree.Element], name: str, date: str, said: str) -> str:
    suites = ElementTree.Element("testsuites")
    counted = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        {
            "name": visible(name) or SUITE,
            "package": SUITE,
            "id": "0",
            "timestamp": f"{date}T00:00:00",
            "hostname": "localhost",
            "tests": str(len(cases)),
            **{key: str(sum(case.find(tag) is not None for case in cases)) for key, tag in counted.items()},
            "time": "0",
        },
    )
    ElementTree.SubElement(suite, "properties")
    suite.extend(cases)
    ElementTree.SubElement(suite, "system-out").text = visible(said)
    ElementTree.SubElement(suite, "system-err")
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _case(result: Result, row: dict[str, Cell], strict: bool) -> ElementTree.Element:
    label, verdict, change = str(row["contender"]), str(row["verdict"]), row["change"]
    case = _test(label)
    text = visible(next(say(found) for found in result.findings if found.contender == label))
    if verdict in ("fail", "mismatch") or (strict and verdict == "inconclusive"):
        failure = ElementTree.SubElement(case, "failure", {"message": text, "type": verdict})
        worst = ", ".join(str(lost["query"]) for lost in result.table("lost") if lost["contender"] == label)
        told = triple(change, signed=True) if isinstance(change, Estimate) else ""
        failure.text = visible(f"nDCG@10 {told}; worst: {worst}")
    elif verdict == "inconclusive":
        ElementTree.SubElement(case, "skipped", {"message": f"inconclusive: {text}"})
    return case


def _mismatch(result: Result) -> ElementTree.Element:
    case = _test("baseline")
    failure = ElementTree.SubElement(case, "failure", {"message": visible(say(result.answer)), "type": "mismatch"})
    failure.text = visible("; ".join(map(say, result.findings)))
    return case


def _test(name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", {"classname": SUITE, "name": visible(name), "time": "0"})
