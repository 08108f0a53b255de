"""What people and their tools read of a gate: each format by its own reader, with hostile texts in it."""

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from lxml import etree
from markdown_it import MarkdownIt
from shared import STARTER, done

import steelyard_eval as sy
from steelyard_eval.cli.main import main
from steelyard_eval.result import document
from steelyard_eval.views import gate_formats

HARM = "<script>alert(1)</script> | **@team** ](http://x) \x1b[31m\r\n::error::%0A &amp; `x`"
HARMFUL_ID = "".join(char for char in HARM if char.isprintable() and char != " ")
FACES = ("--github", "--markdown", "g.md", "--junit", "g.xml", "--out", "g.json")
JUNIT = etree.XMLSchema(etree.parse(Path(__file__).parent / "junit.xsd"))


@pytest.fixture(scope="module")
def hostile():
    """Twelve entries and queries whose every text is hostile."""
    corpus = [{"id": f"{HARMFUL_ID}{at}", "text": f"word{at} {HARM}", "title": HARM} for at in range(12)]
    queries = [{"id": f"q{at}{HARMFUL_ID}", "text": f"word{at} {HARM}", "category": HARM} for at in range(12)]
    qrels = {query["id"]: {entry["id"]: 1} for query, entry in zip(queries, corpus, strict=True)}
    return sy.load({"corpus": corpus, "queries": queries, "qrels": qrels, "name": HARM})


@pytest.fixture(scope="module")
def found(hostile, tmp_path_factory):
    """Results by verdict."""
    path = tmp_path_factory.mktemp("hostile") / "baseline.json"
    ids = [entry.id for entry in hostile.dataset.entries]
    right = {query.id: [*hostile.dataset.qrels[query.id], *ids] for query in hostile.dataset.queries}
    one = right | {hostile.dataset.queries[0].id: ids[1:2] + right[hostile.dataset.queries[0].id]}
    hostile.update_baseline({HARM: lambda query: right[query.id]}, reason=HARM, baseline=path)
    other = sy.load({"corpus": {"a": "x"}, "queries": {"q": "x"}, "qrels": {"q": ["a"]}})
    return {
        "pass": hostile.gate({HARM: lambda query: right[query.id]}, baseline=path),
        "fail": hostile.gate({HARM: lambda query: ids[::-1]}, baseline=path),
        "inconclusive": hostile.gate({HARM: lambda query: one[query.id]}, baseline=path),
        "mismatch": other.gate(baseline=path),
    }


VERDICTS = ("pass", "fail", "inconclusive", "mismatch")


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_document_is_read_back(found, verdict):
    assert found[verdict].verdict == verdict
    assert document.read(document.render(found[verdict].result).encode()) == found[verdict].result
    assert len(found[verdict].to_frame()) == len(found[verdict].result.table("gated"))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("verdict", VERDICTS)
def test_junit_follows_its_schema(found, verdict, strict):
    tree = etree.fromstring(gate_formats.junit(found[verdict].result, strict).encode())
    JUNIT.assertValid(tree)
    bad = verdict in ("fail", "mismatch") or (strict and verdict == "inconclusive")
    assert (tree.find("testsuite").get("failures"), len(tree.findall(".//failure"))) == (str(int(bad)), int(bad))
    assert len(tree.findall(".//skipped")) == (verdict == "inconclusive" and not strict)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_markdown_has_no_markup_but_ours_and_shows_little_at_once(found, verdict):
    """Ten lines at most: verdict, change with its interval, the three queries that lost most."""
    page = gate_formats.pull_request(found[verdict].result)
    html = MarkdownIt("commonmark").enable("table").render(page)
    ours = re.compile("/?(p|strong|table|thead|tbody|tr|th|td|code|details|summary|br|ul|li)")
    assert all(map(ours.fullmatch, set(re.findall(r"<(/?\w+)", html))))
    assert "\x1b" not in page
    assert re.findall(r"(?<!\w)@\w+", re.sub(r"<code>.*?</code>", "", html)) == []  # nobody is mentioned
    assert page.startswith(("✅ **", "❌ **", "⚠️ **", "⛔ **"))

    shown = page.partition("<details>")[0]
    assert len(shown.splitlines()) <= 10
    if verdict == "fail":
        assert re.search(r"-0\.\d{3} nDCG@10 against the baseline \(-0\.\d{3} to -0\.\d{3}, 95% sure", shown)
        assert shown.count("1.00 → ") == 3
    assert ("lost most" in shown) is (verdict in ("fail", "inconclusive"))


LEVELS = {"pass": "notice", "fail": "error", "inconclusive": "warning", "mismatch": "error"}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_annotations_are_one_line_each_and_nothing_else(found, verdict):
    lines = list(gate_formats.annotate(found[verdict].result))
    assert lines
    for line in lines:
        assert re.fullmatch(rf"::{LEVELS[verdict]} title=[^:,\r\n]*::[^\r\n]*", line)


def test_the_step_summary_and_all_files_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    Path("summary.md").write_text("before\n")
    words = ["gate", STARTER, "--baseline", "baseline.json", "-q"]
    done(*words, "bm25", "--update", "--reason", "first")
    told = done(*words, *FACES)
    assert "::notice title=steelyard gate::Pass" in told.stderr
    assert Path("summary.md").read_text() == "before\n" + Path("g.md").read_text()
    JUNIT.assertValid(etree.parse("g.xml"))


class TestUndecided:
    """A gate that an error ends says so in every file, in place of what an earlier one found."""

    @pytest.fixture(autouse=True)
    def earlier(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
        for name in ("summary.md", "g.md", "g.xml", "g.json"):
            Path(name).write_text("Pass, said an earlier run\n")

    def test_the_message_is_in_every_file_and_harmless(self):
        hostile = "<script>alert(1)</script>|**@team**\n::error::x.json"
        told = done("gate", STARTER, *FACES, "--baseline", hostile, code=2).stderr
        page = Path("g.md").read_text()
        assert "::error title=steelyard gate" in told
        html = MarkdownIt("commonmark").render(page)
        assert set(re.findall(r"<(\w+)", html)) == {"p", "strong", "ul", "li", "code"}
        assert "&lt;script&gt;alert(1)&lt;/script&gt;|**@team**" in html  # nothing of it is escaped in the source
        assert "no baseline at" in html and "steelyard init" in html  # the fault and the remedy
        assert "@" not in re.sub("<code>.*?</code>", "", html)
        assert Path("summary.md").read_text() == "Pass, said an earlier run\n" + page
        tree = etree.parse("g.xml")
        JUNIT.assertValid(tree)
        assert (tree.find("testsuite").get("errors"), tree.find("testsuite").get("failures")) == ("1", "0")
        assert "no baseline at" in tree.find(".//error").get("message")
        assert not Path("g.json").exists()

    def test_what_is_stopped_leaves_no_result_of_an_earlier_one(self, monkeypatch):
        def stop(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("steelyard_eval.gate.gate.check", stop)
        with pytest.raises(SystemExit) as ended:
            main(["gate", str(STARTER), *FACES])
        assert ended.value.code == 130
        assert "was stopped" in Path("g.md").read_text()
        assert "was stopped" in etree.parse("g.xml").find(".//error").get("message")


def test_in_pytest_a_regression_fails_and_the_summary_is_printed(tmp_path):
    mine = {"mine": lambda query: ["api-pool-exhaustion"]}
    sy.load(STARTER).update_baseline(mine, reason="first", baseline=tmp_path / "baseline.json")
    tests = Path(__file__).with_name("regressions.txt").read_text().replace("STARTER", repr(str(STARTER)))
    (tmp_path / "test_mine.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", "."]
    plugin = [] if "steelyard" in entry_points(group="pytest11").names else ["-p", "steelyard_eval.testing"]
    ended = subprocess.run([*command, *plugin, "test_mine.py"], cwd=tmp_path, capture_output=True, text=True)
    assert "2 failed, 1" in ended.stdout
    assert "mine returned 7" in ended.stdout
    assert re.search("AssertionError: (Fail|Inconclusive): mine:", ended.stdout)
    assert "steelyard gate" in ended.stdout
    assert "mine changed." in ended.stdout
