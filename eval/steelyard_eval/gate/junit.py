"""A gate's result as JUnit XML, one test case a contender."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from steelyard.base.errors import visible
from steelyard_eval.common.documents.gate import GateDocument, GatedRecord
from steelyard_eval.gate.gate_text import change

SUITE = "steelyard.gate"


def junit_xml(record: GateDocument, strict: bool = False, date: str = "1970-01-01") -> str:
    """The document, with its declaration; valid by the schemas of Ant and of Jenkins, which differ.

    Fail and mismatch are failures. Inconclusive is a failure where it counts as one; else the case is skipped,
    which test reports show.
    """
    cases = [_case(row, strict) for row in record["contenders"]] or [_mismatch(record)]
    return _document(cases, record["dataset"]["name"], date, record["sentence"])


def undecided_xml(error: str, date: str = "1970-01-01") -> str:
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


def _case(row: GatedRecord, strict: bool) -> ElementTree.Element:
    case = _test(row["label"])
    text = visible(row["text"])
    if row["verdict"] in ("fail", "mismatch") or (strict and row["verdict"] == "inconclusive"):
        failure = ElementTree.SubElement(case, "failure", {"message": text, "type": row["verdict"]})
        failure.text = visible(f"nDCG@10 {change(row)}; worst: {', '.join(query['id'] for query in row['worst'])}")
    elif row["verdict"] == "inconclusive":
        ElementTree.SubElement(case, "skipped", {"message": f"inconclusive: {text}"})
    return case


def _mismatch(record: GateDocument) -> ElementTree.Element:
    case = _test("baseline")
    failure = ElementTree.SubElement(case, "failure", {"message": visible(record["sentence"]), "type": "mismatch"})
    failure.text = visible("; ".join(finding["text"] for finding in record["findings"]))
    return case


def _test(name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", {"classname": SUITE, "name": visible(name), "time": "0"})
