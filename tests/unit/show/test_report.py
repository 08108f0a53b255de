"""Reports of hostile, sparse and broken results. Expected sentences are written out by hand."""

import base64
import copy
import csv
import hashlib
import html
import html.parser
import json
import re
import zlib

import pytest

from steelyard.base.errors import DataError
from steelyard.base.files import canonical
from steelyard_eval.common import markup as texts
from steelyard_eval.show.report import load_results, write_report
from steelyard_eval.show.report.decision_section import promised
from steelyard_eval.show.report.leaderboard import _verdict
from steelyard_eval.show.report.queries import movers

TOO_FEW = "too few queries to tell"
VOID = {"meta", "wbr", "br", "hr", "img", "link", "input"}
HOSTILE = (
    "<script>document.title='pwned'</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x=\'',
    "a & b &lt;script&gt; {{ 7*7 }} {% raw %}",
    "red \x1b[31m bell \x07 nul \x00 csi \x9b",
    "safe\u202eexe.gpj\u2066 \u200b\ufeff \U000e0041",
    "a | b\n| c |\r\n# heading\n\n- item",
    "`code` *bold* _em_ [link](javascript:alert(1)) ![i](http://x.example/p.png) ~~s~~",
    "https://evil.example/ //evil.example www.evil.example",
    "</style></title></svg><svg onload=alert(1)>",
    "]]> <!-- <![CDATA[",
)
hostile = pytest.mark.parametrize("poison", HOSTILE, ids=range(len(HOSTILE)))


class Document(html.parser.HTMLParser):
    """Elements, attributes and text of an HTML file; fails on elements that are not closed in order."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.attributes, self.text, self.metas = [], [], [], "", []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "meta":
            self.metas.append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def elements(page):
    return [tag for tag in Document(page).tags if tag not in ("wbr", "title")]


def configuration(label, strategy="fts", **more):
    return {
        "label": label, "system": label, "profile": "documented", "family": "single", "strategy": strategy,
        "kind": "system", **more,
    }  # fmt: skip


def mean(label, value, metric="nDCG@10", low=None, high=None):
    low, high = value - 0.05 if low is None else low, value + 0.05 if high is None else high
    return {"label": label, "metric": metric, "mean": value, "low": low, "high": high, "queries": 40}


def compared(challenger, delta, verdict, **more):
    return {
        "challenger": challenger, "baseline": "fts", "metric": "nDCG@10", "delta": delta, "low": delta - 0.02,
        "high": delta + 0.02, "p": 0.004, "p_holm": 0.012, "wins": 20, "ties": 11, "losses": 9, "mde": 0.07,
        "queries_needed": 120, "verdict": verdict, **more,
    }  # fmt: skip


def part(value, low, high, queries=40):
    return {"value": value, "low": low, "high": high, "queries": queries}


CHOSEN = {
    "system": "plain", "profile": "documented", "strategy": "b", "plateau": [0.4, 0.6],
    "in_sample": part(0.61, 0.57, 0.65, 120),
    "curve": [{"weight": w / 10, "value": 0.5 + (0.1 if 4 <= w <= 6 else 0.0)} for w in range(11)],
}  # fmt: skip


@pytest.fixture
def results():
    labels = ("fts", "vector", "echovault")
    return {
        "schema_version": 1,
        "tool": "steelyard 0.1.0",
        "dataset": {
            "name": "workshop", "description": "Notes.", "licence": "CC0-1.0", "sha256": "ab" * 32,
            "entries": 1243, "queries": 42, "judged": 40, "as_of": "2026-03-01T00:00:00Z",
        },
        "split": "test",
        "limit": 10,
        "dialect": "values are trec_eval's",
        "model": "minilm",
        "recipe": "{title}\n{text}",
        "notices": ["2 queries have no judgment"],
        "primary": "nDCG@10",
        "baseline": "fts",
        "configurations": [configuration(label) for label in labels],
        "results": [
            mean(label, value, metric)
            for metric in ("R@10", "nDCG@10")
            for label, value in zip(labels, (0.4, 0.35, 0.5), strict=True)
        ],
        "comparisons": [compared("vector", -0.05, "worse"), compared("echovault", 0.1, "better")],
        "per_query": [
            {"id": "q1", "text": "same", "category": "x", "values": dict.fromkeys(labels, 0.5)},
            {"id": "q2", "text": "differs", "values": {"fts": 0.0, "vector": 0.25, "echovault": 1.0}},
            {"id": "q3", "text": "differs less", "values": {"fts": 0.5, "vector": None, "echovault": 0.75}},
        ],
        "timing": [{"label": "fts", "p50_ms": 0.5, "p95_ms": 12.25, "queries": 40, "embedding_calls": 0}],
        "rankings": {
            "lists": [
                {"label": "fts", "queries": {"q2": {"entries": ["m1", "m2"], "scores": [2.5, 1.0],
                                                    "parts": {"fts": [2.5, 1.0]}}}},
                {"label": "echovault", "queries": {"q2": {"entries": ["m3", "m1"], "scores": [0.9, 0.5],
                                                          "parts": {"fts": [0.0, 0.3], "vector": [0.9, 0.2]}}}},
            ],
            "grades": {"q1": {}, "q2": {"m3": 2, "m2": 0, "m4": 1}, "q3": {"m1": 1}},
            "entries": {"m1": "first entry", "m2": "second entry", "m3": "third entry", "m4": "fourth entry"},
        },
        "command": "steelyard compare workshop fts vector echovault",
        "chosen": copy.deepcopy(CHOSEN),
    }  # fmt: skip


NAMED = ("values", "parts", "queries", "grades", "graded", "entries")
"""Keys whose own keys are names from the data."""


def poisoned(value, poison, key=""):
    """Every text of the results with the poison behind it; verdicts are the one fixed vocabulary."""
    if isinstance(value, dict):
        keys = {k: f"{k} {poison}" if key in NAMED else k for k in value}
        return {keys[k]: poisoned(item, poison, "graded" if key == "grades" else k) for k, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item, poison, key) for item in value]
    return f"{value} {poison}" if isinstance(value, str) and key != "verdict" else value


def written(results, folder):
    write_report(results, folder)
    return (folder / "report.html").read_text("utf-8"), (folder / "report.md").read_text("utf-8")


def test_the_files_are_written_and_returned(results, tmp_path):
    paths = write_report(results, tmp_path / "new" / "folder")
    assert [path.name for path in paths] == [
        "report.html", "report.md", "summary.md", "report.json", "leaderboard.csv", "queries.csv",
        "leaderboard.tex", "timing.json",
    ]  # fmt: skip
    assert all(path.read_bytes().endswith(b"\n") for path in paths)


def scripts(page):
    return re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)


@hostile
def test_hostile_text_becomes_no_markup(results, tmp_path, poison):
    page, _ = written(poisoned(results, poison), tmp_path)
    harmless, _ = written(poisoned(results, "harmless"), tmp_path / "harmless")
    document = Document(page)
    # The script is that of the package, and the data beside it are base64.
    (kind, data), (_, script) = scripts(page)
    assert kind == ' type="application/octet-stream" id="lists"'
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", data)
    assert script == scripts(harmless)[1][1]
    # The very same elements, but for line breaks and the titles of clipped labels.
    assert elements(page) == elements(harmless)
    assert not [name for _, name, _ in document.attributes if name.startswith("on")]
    told = ("aria-label", "data-head")
    assert not [value for _, name, value in document.attributes if "//" in value and name not in told]
    assert not {name for _, name, _ in document.attributes} & {"src", "action", "data", "srcset"}
    styles = [(tag, value) for tag, name, value in document.attributes if name == "style"]
    assert {tag for tag, _ in styles} <= {"path", "use", "text", "g"}
    assert all(re.fullmatch(r"([a-z-]+: [-a-z0-9#(), .%]+(; )?)+", value) for _, value in styles)
    assert all(re.fullmatch("#[a-z0-9]+", value) for _, name, value in document.attributes if name == "href")
    assert not set(document.tags) & {"link", "img", "iframe", "object", "embed", "base", "form"}


def unpacked(page):
    return json.loads(zlib.decompress(base64.b64decode(scripts(page)[0][1])))


def test_the_page_has_the_lists_of_every_query(results, tmp_path):
    data = unpacked(written(results, tmp_path)[0])
    assert data["labels"] == ["fts", "echovault"]
    assert data["queries"][1] == ["q2", "differs", ""]
    assert data["values"] == [[500, 0, 500], [500, 1000, 750]]
    first, second = data["lists"]
    assert [data["ids"][at] for at in first["entries"]] == ["m1", "m2"]
    assert first["lengths"] == [0, 2, 0]
    assert (first["tops"][1], first["scores"], first["parts"]) == (2.5, [1000, 400], [[1000, 400]])
    # 0.3 and 0.2 of 0.9, in thousandths of the best score.
    assert dict(zip(second["signals"], second["parts"], strict=True)) == {"fts": [0, 333], "vector": [1000, 222]}
    grades = [data["grades"][1][at : at + 2] for at in range(0, len(data["grades"][1]), 2)]
    assert {data["ids"][entry]: grade for entry, grade in grades} == {"m2": 0, "m3": 2, "m4": 1}


def test_both_rankings_are_there_without_a_script(results, tmp_path):
    for text in (Document(written(results, tmp_path)[0]).text, written(results, tmp_path)[1]):
        part = text.split("differs")[1]
        assert "0.000 to 1.000" in part
        assert "third entry" in part
        assert "was #1" in part


def test_the_lists_get_the_room_that_the_rest_of_the_page_leaves(results, tmp_path, monkeypatch):
    bare = len(written(results | {"rankings": None}, tmp_path / "bare")[0].encode())
    whole = len(written(results, tmp_path / "whole")[0].encode())
    limit = (bare + whole) // 2 + 1000  # a thousand bytes are kept for what stands around them
    monkeypatch.setattr("steelyard_eval.show.report.render.MOST", limit)
    page = written(results, tmp_path / "less")[0]

    assert bare < len(page.encode()) <= limit
    assert "To stay small this page has" in page or "did not fit into this page" in page


def test_a_page_that_is_too_large_has_fewer_lists(results):
    from steelyard_eval.show.report.data import pack

    labels = [f"c{at}" for at in range(6)]
    ids = [hashlib.sha256(str(at).encode()).hexdigest() for at in range(600)]
    queries = [f"q{at}" for at in range(60)]
    results["per_query"] = [{"id": id_, "values": dict.fromkeys(labels, 0.5)} for id_ in queries]
    results["rankings"] = {
        "lists": [
            {
                "label": label,
                "queries": {q: {"entries": ids[at * 10 : at * 10 + 10]} for at, q in enumerate(queries)},
            }
            for label in labels
        ],
        "grades": {q: {} for q in queries},
        "entries": {},
    }
    whole = pack(results, 1_000_000)
    assert whole.note == ""
    fewer = pack(results, len(whole.text) - 10)
    assert len(fewer.text) < len(whole.text) - 10
    assert "the lists of" in fewer.note
    nothing = pack(results, 100)
    assert nothing.text == ""
    assert nothing.note == "The lists of all queries did not fit into this page; they are in report.json."


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("lists", 0, "label"), None, r"rankings\.lists\.0\.label' = None: must be of type string"),
        (("lists", 0, "queries", "q2", "scores"), [1.0], r"rankings\.lists\.0\.queries\.q2 = .*as many scores"),
        (
            ("lists", 0, "queries", "q2", "parts", "fts"),
            ["x", 1],
            r"queries\.q2\.parts\.fts\.0' = 'x': must be of type num",
        ),
        (("lists", 0, "queries", "q2"), {"entries": ["m1"], "parts": {"fts": []}}, r"q2 = .*as many scores"),
        (("grades", "q2", "m3"), "2", r"rankings\.grades\.q2\.m3' = '2': must be of type integer"),
        (("entries", "m1"), 7, r"rankings\.entries\.m1' = 7: must be of type string"),
    ],
)
def test_faults_of_lists_are_named(results, tmp_path, place, value, message):
    inner = results["rankings"]
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    assert re.search(message, broken(tmp_path, json.dumps(results)))


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("chosen", 3, "'chosen' = 3: must be of type null or object"),
        ("leaderboard", [{"label": "a", "strategy": "fts"}], "'leaderboard.0': must have mean, gain"),
        ("runner_up", {"label": "a"}, "'runner_up': must have mean, parted"),
        ("promise", {"low": 0.1}, "'promise': must have metric, value"),
        ("public", {"near": None}, "'public': must have default, collections, better, mean, worst"),
        ("stale", [{"label": "a"}], "'stale.0': must have queries, stale, share, low, high, more, fewer, entries"),
        ("beside", 3, "'beside' = 3: must be of type string"),
    ],
)
def test_every_part_of_a_document_is_held_to_its_type(results, tmp_path, key, value, place):
    """Each of these reached the sections, which read keys that were not there, and ended as a fault of ours."""
    assert place in broken(tmp_path, json.dumps({**results, key: value}))


def test_a_document_may_leave_out_texts_of_queries_and_the_promise(results, tmp_path):
    """The text of a query is not required: what varies as one is then told by its id."""
    results["per_query"] = [
        {"id": f"q{at}", "category": "xy"[at % 2], "text": None, "values": {"fts": 0.1 * at, "echovault": 0.5}}
        for at in range(20)
    ]
    row = {"label": "fts", "strategy": "fts", "mean": 0.4, "gain": None}
    results |= {"verdict": "try", "chosen": {"strategy": "fts"}, "leaderboard": [row], "promise": None}
    write_report(results, tmp_path)
    assert "chosen." in (tmp_path / "leaderboard.tex").read_text("utf-8")


def test_cells_of_csv_start_no_formula(results, tmp_path):
    results["per_query"][1]["text"] = '=HYPERLINK("http://evil.example";"x")'
    write_report(results, tmp_path)
    rows = list(csv.reader((tmp_path / "queries.csv").read_text("utf-8").splitlines()))
    assert rows[0] == ["id", "category", "text", "echovault", "fts", "vector"]
    assert rows[2] == ["q2", "", '\'=HYPERLINK("http://evil.example";"x")', "1.0", "0.0", "0.25"]
    first = next(csv.DictReader((tmp_path / "leaderboard.csv").read_text("utf-8").splitlines()))
    assert (first["label"], first["metric"], first["mean"]) == ("fts", "R@10", "0.4")


def explained(page):
    """The terms of the glossary."""
    section = page.split('<section id="glossary"')[1].split("</section>")[0]
    return {html.unescape(re.sub("<wbr>", "", term)) for term in re.findall("<dt>(.*?)</dt>", section)}


def test_every_column_is_in_the_glossary(results, tmp_path):
    written(results, tmp_path)
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', (tmp_path / "report.html").read_text("utf-8"))
    names = {html.unescape(re.sub("<wbr>", "", head)) for head in heads} - {"fts", "vector", "echovault"}
    assert names
    assert names <= explained((tmp_path / "report.html").read_text("utf-8"))


@hostile
def test_no_control_or_direction_character_reaches_a_file(results, tmp_path, poison):
    unseen = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
    page, markdown = written(poisoned(results, poison), tmp_path)
    assert not unseen.search(page)
    assert not unseen.search(markdown)


def test_escapes_are_shown(results, tmp_path):
    page, markdown = written(poisoned(results, "\x1b[31m\u202e"), tmp_path)
    assert r"\x1b[31m\u202e" in page
    assert r"\\x1b[31m\\u202e" in markdown


def test_the_policy_allows_the_inline_style_and_one_script(results, tmp_path):
    page, _ = written(results, tmp_path)
    policies = [m["content"] for m in Document(page).metas if m.get("http-equiv") == "Content-Security-Policy"]
    script = scripts(page)[1][1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policies == [
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    ]
    assert not re.search("innerHTML|outerHTML|insertAdjacent|document.write|eval", script)
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page
    assert not re.search(r"https?://", page)


@hostile
def test_markdown_holds_no_html_and_its_tables_keep_their_shape(results, tmp_path, poison):
    _, clean = written(results, tmp_path)
    _, markdown = written(poisoned(results, poison), tmp_path)
    outside_code = re.sub(r"`[^`\n]*`", "", markdown.replace(r"\`", ""))
    assert not re.search(r"<[a-zA-Z/!?]", markdown)
    assert not re.search(r"(?<!\\)\[[^\]\n]*(?<!\\)\]\(", outside_code)
    assert not re.search(r"https?://", outside_code)
    assert [line.split(" ")[0] for line in markdown.splitlines() if line.startswith("#")] == [
        line.split(" ")[0] for line in clean.splitlines() if line.startswith("#")
    ]
    assert shape(markdown) == shape(clean)


def shape(markdown):
    """Cells of every table row, pipes that are escaped not counted."""
    return [len(re.findall(r"(?<!\\)\|", line)) for line in markdown.splitlines() if line.startswith("|")]


def test_tables_of_markdown_have_as_many_cells_in_every_row(results, tmp_path):
    tables = re.findall(r"(?:^\|.*\n)+", written(results, tmp_path)[1], re.MULTILINE)
    assert len(tables) == 11
    for table in tables:
        assert len(set(shape(table))) == 1


def test_same_results_same_bytes_whatever_the_order_of_keys(results, tmp_path):
    first = {path.name: path.read_bytes() for path in write_report(results, tmp_path / "a")}
    shuffled = json.loads(json.dumps(results), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert {path.name: path.read_bytes() for path in write_report(shuffled, tmp_path / "b")} == first


def test_timing_stands_in_its_own_file(results, tmp_path):
    write_report(results, tmp_path)
    text = (tmp_path / "report.json").read_text("utf-8")
    rest = {key: value for key, value in results.items() if key != "timing"}
    assert text == canonical(rest, one_line=True)
    assert text.count("\n") == 1
    assert json.loads((tmp_path / "timing.json").read_text("utf-8")) == results["timing"]
    # The page names the hash of the JSON that it shows.
    assert hashlib.sha256(text.encode()).hexdigest() in (tmp_path / "report.html").read_text("utf-8")


def test_results_are_not_changed(results, tmp_path):
    before = copy.deepcopy(results)
    write_report(results, tmp_path)
    assert results == before


def test_numbers_of_every_table_are_in_both_forms(results, tmp_path):
    page, markdown = written(results, tmp_path)
    shown = Document(page).text
    for text in (
        "0.500",
        "[0.450, 0.550]",
        "+0.100 [+0.080, +0.120]",
        "0.0040",
        "0.0120",
        "20 / 11 / 9",
        "12.25",
        "120",
    ):
        assert text in shown
        assert text in markdown
    assert "1,243" in shown


def test_tables_have_captions_and_scopes(results, tmp_path):
    document = Document(written(results, tmp_path)[0])
    assert document.tags.count("caption") == document.tags.count("table") == 5
    scopes = [value for tag, name, value in document.attributes if (tag, name) == ("th", "scope")]
    assert len(scopes) == document.tags.count("th")


def test_the_widest_disagreement_comes_first_and_equal_values_are_left_out(results, tmp_path):
    _, markdown = written(results, tmp_path)
    section = markdown.split("widest range first")[1].split("## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert [row.split(" (")[0] for row in rows] == [
        "| query | echovault | fts | vector |",
        "| differs",
        "| differs less",
    ]
    # Columns as in the first table, best mean first: echovault, fts, vector.
    assert rows[2] == r"| differs less (q3) | 0.750\* | 0.500 | – |"  # noqa: RUF001 -- the dash a report prints


def test_ten_configurations_and_forty_queries_stay_under_100_kb(results, tmp_path):
    strategy = "weighted_sum(0.25*tfidf, 0.15*cosine, 0.15*severity, 0.15*recency(half_life=365d), 0.15*tags)"
    labels = [f"configuration {at} {strategy}" for at in range(10)]
    metrics = ("nDCG@10", "R@10", "RR@10", "RecallAll@10", "Judged@10")
    results |= {
        "baseline": labels[0],
        "configurations": [configuration(label, strategy) for label in labels],
        "results": [mean(label, 0.4 + at / 100, m) for at, label in enumerate(labels) for m in metrics],
        "comparisons": [compared(label, 0.1, "better", baseline=labels[0]) for label in labels[1:]],
        "per_query": [
            {"id": f"q{q}", "text": "long query " * 60, "values": {label: (q * at) % 7 / 7 for at, label in
             enumerate(labels)}} for q in range(40)
        ],
        "timing": [],
        "chosen": {**CHOSEN, "curve": [{"weight": w / 9999, "value": w % 97 / 97} for w in range(10_000)]},
    }  # fmt: skip
    page, _ = written(results, tmp_path)
    assert len(page.encode()) < 100_000


def test_one_fault_is_told_once(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(DataError) as raised:
        load_results(tmp_path / "other.json")
    assert len(str(raised.value).splitlines()) == 1
    assert "--json of `steelyard compare`" in str(raised.value)


SUM = "weighted_sum(0.7*bm25, 0.3*vector, normalize=minmax)"
MEANS = {label: mean(label, value) for label, value in (("echovault", 0.5), ("fts", 0.4), ("vector", 0.35))}


def test_rivals_whose_intervals_overlap_are_named(results, tmp_path):
    results["results"] = [mean("fts", 0.4), mean("vector", 0.47), mean("echovault", 0.5)]
    assert "no test separates echovault from vector; their intervals overlap." in written(results, tmp_path)[1]


def test_a_recommendation_stands_first_in_the_report(results, tmp_path):
    rows = [
        {"label": "rrf <b>", "strategy": "rrf(a, b)", "mean": 0.5, "low": 0.4, "high": 0.6}
        | {"gain": {"mean": 0.1, "low": 0.0, "high": 0.2}},
        {"label": "fts", "strategy": "fts", "mean": 0.4, "low": 0.3, "high": 0.5, "gain": None},
    ]
    promise = {"metric": "nDCG@10", "value": 0.08, "low": 0.01, "high": 0.15, "queries": 40, "harm": 0.02}
    second = {"label": "fts", "mean": 0.1, "low": -0.1, "high": 0.3, "parted": False}
    results |= {
        "sentence": "Use rrf <b>.",
        "verdict": "ship",
        "promise": promise,
        "leaderboard": rows,
        "bound": 0.2,
    }
    results |= {"chosen": {"strategy": "rrf(a, b)"}, "current": {"strategy": "fts"}, "runner_up": second}
    page, markdown = written(results, tmp_path)

    assert Document(page).text.index("Use rrf <b>.") < Document(page).text.index("Recommendation")
    for text in (Document(page).text, markdown):
        assert "+0.080 [+0.010, +0.150]" in text
        assert "which these queries cannot tell apart" in text
        assert "current" in text
    assert r"\u2212" not in page  # one minus sign, also in what the page draws later
    assert "<b>" not in page.split("<body>")[1].split("Queries where")[0].replace("&lt;b&gt;", "")


def test_after_three_notices_the_others_are_folded_on_the_page_and_listed_in_markdown(results, tmp_path):
    html, markdown, *_ = write_report({**results, "notices": [f"notice {at}" for at in range(5)]}, tmp_path)
    page = html.read_text("utf-8")
    opened, folded = page.index("<details><summary>2 more</summary>"), page.index("</details>")
    places = [page.index(f'<p class="warning">notice {at}</p>') for at in range(5)]
    assert max(places[:3]) < opened < places[3] < places[4] < folded
    assert "- notice 0\n- notice 1\n- notice 2\n- notice 3\n- notice 4\n" in markdown.read_text("utf-8")
    alone = write_report({**results, "notices": ["notice 0"]}, tmp_path)[0].read_text("utf-8")
    assert "more</summary>" not in alone


def test_a_probability_is_never_printed_as_nothing():
    """One in 50,000 is not never."""
    promise = {"value": 0.06, "low": 0.05, "high": 0.07, "metric": "nDCG@10", "queries": 40, "harm": 0.00002}
    row = {"label": "fts", "mean": 0.4, "low": 0.3, "high": 0.5, "gain": None}
    (facts, *_) = promised(
        {"verdict": "ship", "promise": promise, "leaderboard": [row], "current": {"strategy": "fts"}}
    )
    assert dict(facts.pairs)["probability that it is worse"] == "<0.0001"


@pytest.mark.parametrize(
    ("raw", "escaped"),
    [
        ("plain nDCG@10 min_results [0.1, -0.2]", "plain nDCG@10 min_results [0.1, -0.2]"),
        ("- item", r"\- item"),
        ("# head", r"\# head"),
        ("1. item", r"1\. item"),
        ("0.5 and +0.5", "0.5 and +0.5"),
        ("---", r"\---"),
        ("<0.0001", "<0.0001"),
        ("<b> & &amp;", "&lt;b&gt; &amp; &amp;amp;"),
        ("_em_ __strong__ a_b", r"\_em\_ \_\_strong\_\_ a_b"),
        ("[1](x) [1]: x [^1]", r"[1\](x) [1\]: x \[^1]"),
        ("http://x www.x", r"http\://x www\.x"),
        ("back\\slash | `tick`", r"back\\slash \| \`tick\`"),
    ],
)
def test_markdown_escapes_what_means_something_and_nothing_else(raw, escaped):
    assert texts.markdown(raw) == escaped


def test_a_code_span_is_left_only_by_its_end():
    assert texts.markdown_code("rrf(fts, 0.5*vector)") == "`rrf(fts, 0.5*vector)`"
    assert texts.markdown_code("a`b") == r"a\`b"
    assert texts.markdown_code("a` <script>") == r"a\` &lt;script&gt;"
    assert texts.markdown_code("") == ""


def test_loading_what_compare_wrote_gives_the_same_report(results, tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results), encoding="utf-8")
    assert load_results(path) == results
    assert written(load_results(path), tmp_path / "a") == written(results, tmp_path / "b")


def test_a_report_json_loads_again(results, tmp_path):
    write_report(results, tmp_path)
    assert "timing" not in load_results(tmp_path / "report.json")


def test_unknown_keys_are_kept(results, tmp_path):
    results["later"] = {"version": 9}
    write_report(results, tmp_path)
    assert load_results(tmp_path / "report.json")["later"] == {"version": 9}


def broken(tmp_path, text):
    path = tmp_path / "results.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError) as caught:
        load_results(path)
    assert "results.json" in str(caught.value)
    assert str(caught.value).isascii()
    return str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"cannot read the results file .*absent\.json.*No such file"):
        load_results(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema_version": 1,', "is not valid JSON: .*line 1 column 22"),
        ('{"limit": NaN}', "NaN is not a number; write a finite one"),
        ('{"limit": -Infinity}', "-Infinity is not a number"),
        (b"\xff\xfe", "cannot read the results file .*utf-8"),
        ("[" * 100_000, "is not valid JSON"),
        ("[]", "\\[\\]: must be of type object"),
        ("{}", "must have schema_version, dataset, split, limit, primary, configurations, results, comparisons"),
        ('{"schema_version": 1, "x": ' + "[" * 900 + "]" * 900 + "}", "nested deeper than 64"),
    ],
)
def test_files_that_are_not_results_are_refused(tmp_path, text, message):
    assert re.search(message, broken(tmp_path, text))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema_version",), 2, r"'schema_version' = 2: must be 1\."),
        (("limit",), "ten", r"'limit' = 'ten': must be of type integer"),
        (("limit",), 0, r"'limit' = 0: must satisfy minimum 1"),
        (("results", 3, "mean"), "0.4", r"'results\.3\.mean' = '0\.4': must be of type number"),
        (("results", 3, "label"), "ftz", r"results\.3\.label = 'ftz': .* no configuration; did you mean 'fts'\?"),
        (("comparisons", 0, "verdict"), "best", r"'best': must be \"better\" or \"worse\" or"),
        (("comparisons", 0, "p"), 1.5, r"'comparisons\.0\.p' = 1\.5: must satisfy maximum 1"),
        (("baseline",), "bm26", r"baseline = 'bm26': is the label of no configuration"),
        (("configurations", 1, "label"), "fts", r"configurations = 'fts': is the label of more than one"),
        (("verdict",), "maybe", r"'verdict' = 'maybe': must be \"ship\" or \"try\" or \"keep\""),
        (
            ("per_query", 1, "values", "fts"),
            "x",
            r"'per_query\.1\.values\.fts' = 'x': must be of type null or number",
        ),
        pytest.param(("dataset", "name"), "half \ud800", r"'half \\ud800': must be Unicode", id="surrogate"),
    ],
)
def test_faults_name_place_value_and_rule(results, tmp_path, path, value, message):
    inner = results
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert re.search(message, broken(tmp_path, json.dumps(results)))
    with pytest.raises(DataError, match=message):
        write_report(results, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_all_faults_are_told_at_once(results, tmp_path):
    results["limit"] = "ten"
    results["results"][0]["mean"] = None
    lines = broken(tmp_path, json.dumps(results)).splitlines()
    assert len(lines) == 2
    for record in results["results"] * 3:
        record["mean"] = record["low"] = record["high"] = "x"
    assert broken(tmp_path, json.dumps(results)).splitlines()[-1] == "and 9 more faults"


def test_two_values_of_one_metric_are_refused(results, tmp_path):
    results["results"].append(mean("fts", 0.9))
    assert "results = 'fts': has 2 values of 'nDCG@10', and must have one" in broken(tmp_path, json.dumps(results))


def test_the_signal_that_moved_an_entry_is_the_one_that_explain_finds():
    """The worked example of `test_who_moved_and_by_which_signal` in tests/unit/explain/test_explain_query.py."""
    left = {"entries": ["a", "b", "c"], "parts": {"importance": [1, 0.6, 0.2]}}
    right = {"entries": ["b", "c", "a"], "parts": {"importance": [0.12, 0.04, 0.2], "tags": [0.8, 0.4, 0]}}
    assert movers(left, right) == {"b": "tags", "c": "importance", "a": "tags"}
    left["parts"]["tags"] = [0, 0.1, 0.05]  # and one weight alone changed, from 0.1*tags to 2*tags
    right["parts"] = {"importance": [0.6, 0.2, 1], "tags": [2, 1, 0]}
    assert movers(left, right) == dict.fromkeys("abc", "tags")
    assert movers(left, {"entries": ["c", "a"]}) == {}  # the list of another engine


@pytest.mark.parametrize(
    ("kind", "choice", "text"),
    [
        ("tuned", True, "chosen on these queries; the answer above is out of fold"),
        ("tuned", False, "tuned on these queries; not tested"),
        ("system", False, "not compared"),
        ("system", True, "not compared"),
    ],
)
def test_a_row_without_a_test_says_why(kind, choice, text):
    """The answer's odds are of queries that were kept aside, the row's numbers of those that it was chosen on."""
    assert _verdict({"kind": kind}, None, False, choice).text == text
