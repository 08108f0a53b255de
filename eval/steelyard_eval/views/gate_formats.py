"""The result of a gate, or the error that ended it, where others look: pull request, JUnit XML, GitHub Actions."""

import shlex
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from steelyard.base.errors import visible
from steelyard_eval.common.formatting import clip, markdown, markdown_code, verbatim
from steelyard_eval.result.sentences import heading, say
from steelyard_eval.result.structs import Cell, Estimate, QueryRow, Result
from steelyard_eval.views.sheets import Sheet, sheets, triple

MAX_RANKING_QUERY_CHARS = 160
MAX_QUERY_CHARS = 60
MAX_LOST_CONTENDERS = 3
MARKS = {"pass": "✅", "fail": "❌", "inconclusive": "⚠️", "mismatch": "⛔"}


def pull_request(result: Result) -> str:
    """Markdown for a pull request, ending with a line break: ten lines at most, and the numbers folded."""
    lost: dict[str, list[dict[str, Cell]]] = {}
    for row in result.table("lost"):
        lost.setdefault(str(row["contender"]), []).append(row)
    said = [_lost_line(label, rows) for label, rows in [*lost.items()][:MAX_LOST_CONTENDERS]]
    for step in result.answer.steps:
        command = f": {markdown_code(shlex.join(step.command))}" if step.command else ""
        said.append(f"- {markdown(say(step))}{command}")
    said += [] if result.rows else [f"- {markdown(say(finding))}" for finding in result.findings]
    blocks = [f"{MARKS[result.answer.key]} **{markdown(say(result.answer))}**", "\n".join(said)]
    if result.rows:
        summary = heading("summary_rankings" if lost else "summary_numbers")
        inside = [*map(_section, sheets(result, short=True)), "\n".join(_further_lines(result))]
        inside += [_rankings(result, label) for label in lost]
        blocks += [f"<details><summary>{summary}</summary>", *inside, "</details>"]
    return "\n\n".join(block for block in blocks if block) + "\n"


def undecided_page(error: str) -> str:
    """The page of a gate that an error ended: its message, a list item a line."""
    lines = "\n".join(f"- {verbatim(line)}" for line in error.splitlines())
    return f"{MARKS['mismatch']} **{heading('undecided')}**\n\n{lines}\n"


def _lost_line(label: str, rows: Sequence[dict[str, Cell]]) -> str:
    told = (
        f"{code(clip(str(row['query']), MAX_QUERY_CHARS))} {code(clip(str(row['text'] or ''), MAX_QUERY_CHARS))} "
        f"({row['before']:.2f} → {row['now']:.2f})"
        for row in rows
    )
    return f"- {heading('lost_most')} {code(label)}: {', '.join(told)}"


def _further_lines(result: Result) -> Iterator[str]:
    for found in result.findings:
        if found.key != result.answer.facts.get("finding"):
            yield f"- {code(found.contender)}: {markdown(found.verdict)}: {markdown(say(found))}"
    yield from (f"- {markdown(say(notice))}" for notice in result.notices)


def _section(sheet: Sheet) -> str:
    heads = " | ".join(markdown(column.name) for column in sheet.columns)
    rows = [" | ".join((code(first), *map(markdown, others))) for first, *others in sheet.rows]
    lines = [f"| {heads} |", f"|{'---|' * len(sheet.columns)}", *(f"| {row} |" for row in rows)]
    return "\n\n".join(filter(None, (markdown(sheet.title), "\n".join(lines), markdown(sheet.legend))))


def _rankings(result: Result, label: str) -> str:
    labels = [row.label for row in result.rows]
    before = labels[labels.index(label) + 1]  # its baseline is the next row
    rows = [_row(query, label, before) for query in result.queries if label in query.lists]
    heads = f"| {heading('query')} | nDCG@10 | {heading('before')} | {heading('now')} |"
    return "\n".join(
        [f"{len(rows)} {heading('queries_of')} {code(label)}:", "", heads, "|---|---|---|---|", *rows]
    )


def _row(query: QueryRow, label: str, before: str) -> str:
    ranked = (query.lists[side].entries for side in (before, label))
    lists = ("<br>".join(f"{rank}. {code(id_)}" for rank, id_ in enumerate(ids, 1)) for ids in ranked)
    moved = f"{query.values[before]:.3f} → {query.values[label]:.3f}"
    cells = (
        f"{code(query.id)} {code(query.text[:MAX_RANKING_QUERY_CHARS])}",
        moved,
        *(one or heading("nothing") for one in lists),
    )
    return f"| {' | '.join(cells)} |"


def code(text: str) -> str:
    """Text of others in a fixed font; there nothing mentions people or links."""
    return f"<code>{markdown(text)}</code>"


SUITE = "steelyard.gate"


def junit(result: Result, strict: bool = False, date: str = "1970-01-01") -> str:
    """JUnit XML, one test case a contender; valid by the schemas of Ant and of Jenkins, which differ.

    Fail and mismatch are failures. Inconclusive is a failure if `strict`, else a skipped case.
    """
    cases = [_case(result, row, strict) for row in result.table("gated")]
    if not cases:
        cases = [
            _tested("baseline", "failure", say(result.answer), "mismatch", "; ".join(map(say, result.findings)))
        ]
    return _document(cases, result.provenance.data.name, date, say(result.answer))


def undecided_junit(error: str, date: str = "1970-01-01") -> str:
    """The document of a gate that an error ended: a case with the message, as an error and no failure."""
    message = "; ".join(error.splitlines())
    return _document([_tested("gate", "error", message, "undecided")], SUITE, date, message)


def _document(cases: Sequence[ElementTree.Element], name: str, date: str, said: str) -> str:
    suites = ElementTree.Element("testsuites")
    facts = {"name": visible(name) or SUITE, "package": SUITE, "id": "0", "timestamp": f"{date}T00:00:00"}
    facts |= {"hostname": "localhost", "tests": str(len(cases))}
    for key, tag in {"failures": "failure", "errors": "error", "skipped": "skipped"}.items():
        facts[key] = str(sum(case.find(tag) is not None for case in cases))
    suite = ElementTree.SubElement(suites, "testsuite", {**facts, "time": "0"})
    ElementTree.SubElement(suite, "properties")
    suite.extend(cases)
    ElementTree.SubElement(suite, "system-out").text = visible(said)
    ElementTree.SubElement(suite, "system-err")
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _case(result: Result, row: dict[str, Cell], strict: bool) -> ElementTree.Element:
    label, verdict, change = str(row["contender"]), str(row["verdict"]), row["change"]
    text = next(say(found) for found in result.findings if found.contender == label)
    if verdict in ("fail", "mismatch") or (strict and verdict == "inconclusive"):
        worst = ", ".join(str(lost["query"]) for lost in result.table("lost") if lost["contender"] == label)
        told = triple(change, signed=True) if isinstance(change, Estimate) else ""
        return _tested(label, "failure", text, verdict, f"nDCG@10 {told}; worst: {worst}")
    return _tested(label, "skipped", f"inconclusive: {text}") if verdict == "inconclusive" else _tested(label)


def _tested(name: str, tag: str = "", message: str = "", kind: str = "", text: str = "") -> ElementTree.Element:
    case = ElementTree.Element("testcase", {"classname": SUITE, "name": visible(name), "time": "0"})
    if tag:
        typed = {"type": kind} if kind else {}
        ElementTree.SubElement(case, tag, {"message": visible(message), **typed}).text = visible(text) or None
    return case


LEVELS = {"fail": "error", "mismatch": "error", "inconclusive": "warning", "pass": "notice"}


def annotate(result: Result, strict: bool = False) -> Iterator[str]:
    """Annotations of GitHub Actions (::error title=...::message): all that is not fine, or that everything is."""
    findings = [finding for finding in result.findings if finding.verdict != "pass"]
    if not findings:
        yield _annotation("notice", "steelyard gate", say(result.answer))
    for finding in findings:
        level = "error" if strict and finding.verdict == "inconclusive" else LEVELS[finding.verdict]
        yield _annotation(level, f"steelyard gate: {finding.contender or finding.facts['part']}", say(finding))


def undecided_annotation(error: str) -> str:
    """The line of a gate that an error ended."""
    return _annotation("error", heading("github_undecided"), "; ".join(error.splitlines()))


def _annotation(level: str, title: str, message: str) -> str:
    title, message = (
        visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A") for text in (title, message)
    )
    return f"::{level} title={title.replace(':', '%3A').replace(',', '%2C')}::{message}"
