"""A real browser opens reports from disk: it draws, answers clicks, and runs nothing that the data say."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.views.made import paired, result, row

from steelyard_eval.compare import compare
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.gate.gate import check, update
from steelyard_eval.gate.setup import Gate
from steelyard_eval.result.structs import Cost, Latency, Listed, QueryRow, Table
from steelyard_eval.views.report import write
from steelyard_eval.workbench import Workbench

from . import axe

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("STEELYARD_DATA") or "/nowhere")
pytestmark = pytest.mark.usefixtures("opened_once")
PLANTED = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"
SIZES = [(1280, "dark"), (390, "light")]
SCREEN = 844  # pixels: the height of a phone that is 390 wide
MEASURES = Path(__file__).with_name("measures.js").read_text("utf-8")


def measured(page, name):
    return page.evaluate(f"({MEASURES}).{name}()")


@pytest.fixture(scope="module")
def report(tmp_path_factory, opened_once):
    """The report of a comparison on the starter set, and its document."""
    found = compare(starter(), "fts, bm25, echovault, vector", baseline="echovault", timed=False)
    folder = tmp_path_factory.mktemp("report")
    found.report(folder)
    return folder / "report.html", found.result


@pytest.fixture
def show(browser):
    """Opens a page, and keeps what its console says and what it requests."""
    contexts = []

    def opened(path, width=1280, scheme="light"):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.told, page.requested = [], []
        page.on("console", lambda message: page.told.append(message.text))
        page.on("pageerror", lambda error: page.told.append(str(error)))
        page.on("request", lambda request: page.requested.append(request.url))
        page.goto(path.as_uri())
        page.locator(".open").first.wait_for(state="attached")
        measured(page, "unfold")
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_page_is_quiet_asks_for_nothing_fits_and_has_nothing_for_axe(show, report, width, scheme):
    page = show(report[0], width, scheme)
    if width == 390:
        assert page.locator("#leaderboard tbody tr").first.bounding_box()["width"] < 390
        assert measured(page, "wide") == []
        measured(page, "fold")
        assert measured(page, "answer") < 6 * SCREEN
        measured(page, "unfold")
    assert page.locator("svg").count() >= 2
    assert measured(page, "overlaps") == []
    page.locator(".open").first.click()
    assert page.told == []
    assert page.requested == [report[0].as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert width == 390 or set(measured(page, "cut")) == {0}
    assert axe.serious(page) == {}


def test_two_clicks_lead_to_both_rankings(show, report):
    page, document = show(report[0]), report[1]
    measured(page, "fold")
    page.get_by_role("link", name="Queries", exact=True).click()
    page.locator(".open").first.click()
    base, other = list(document.queries[0].lists)[:2]
    gaps = [abs(query.values[other] - query.values[base]) for query in document.queries]
    shown = document.queries[max(range(len(gaps)), key=lambda at: (round(gaps[at], 3), -at))]
    for side, own in zip(page.locator("#explorer .two > div").all(), (base, other), strict=True):
        found = shown.lists[own].entries
        rows = side.locator("ol > li")
        assert rows.count() == len(found)
        for item, entry in zip(rows.all(), found, strict=True):
            grade = shown.grades.get(entry)
            assert item.locator(".grade").inner_text() == ("no label" if grade is None else f"grade {grade}")
            assert entry in item.inner_text()
            assert "score" in item.inner_text()


def test_an_entry_that_moved_tells_by_which_signal(show, tmp_path):
    """The worked example of `test_who_moved_and_by_which_signal` in tests/unit/explain/test_explain_query.py."""
    before = Listed(["a", "b", "c"], [1, 0.6, 0.2], {"importance": [1, 0.6, 0.2]})
    parts = {"importance": [0.12, 0.04, 0.2], "tags": [0.8, 0.4, 0]}
    after = Listed(["b", "c", "a"], [0.92, 0.44, 0.2], parts)
    query = QueryRow("q", "cache", values={"old": 0.2, "new": 0.4}, lists={"old": before, "new": after})
    made = result(row("old", 0.5), row("new", 0.5), queries=[query], entries={one: one for one in "abc"})
    page = show(write(made, tmp_path)[0])
    page.locator(".open").first.click()
    moves = page.locator("#explorer .two > div").nth(1).locator(".move").all_inner_texts()
    assert moves == ["↑ was #2 by tags", "↑ was #3 by importance", "↓ was #1 by tags"]


def test_queries_are_searched_filtered_and_set_side_by_side(show, report):
    page, document = show(report[0]), report[1]
    page.get_by_label("show", exact=True).select_option("worse")
    two = list(document.queries[0].lists)
    page.get_by_label("right", exact=True).select_option(label="fts")
    values = [(query.values[two[0]], query.values["fts"]) for query in document.queries]
    worse = sum(round(1000 * right) < round(1000 * left) for left, right in values)
    assert page.get_by_role("status").inner_text().startswith(f"{worse} of {len(values)} queries")
    page.get_by_label("show", exact=True).select_option("all")
    page.get_by_label("search queries").fill("SKIP LOCKED")
    assert page.locator(".open").count() == 1


def test_tables_are_sorted_and_long_ones_filtered(browser, show, report, tmp_path):
    page, document = show(report[0]), report[1]
    table = page.locator("#metrics table")
    recall = {row.label: row.means["R@10"].mean for row in document.rows}
    page.locator("#metrics th", has_text="R@10").first.locator("button").click()
    first = [text.split(" (")[0] for text in table.locator("tbody th").all_inner_texts()]
    assert first == sorted(recall, key=lambda label: -recall[label])
    assert page.locator("#metrics th[aria-sort=descending]").count() == 1
    assert page.locator("#metrics").get_by_label("show only rows with").count() == 0
    made = result(*(row(f"name {at}", 0.5) for at in range(14)), queries=[])
    page = browser.new_page()
    page.goto(write(made, tmp_path)[0].as_uri())
    measured(page, "unfold")
    page.locator("#metrics").get_by_label("show only rows with").fill("name 13")
    assert page.locator("#metrics tbody tr:visible").count() == 1
    page.close()


def crowded_page(folder):
    """A report with every figure, long names, equal points and one far away."""
    names = [f"weighted_sum({at / 10}*bm25, {1 - at / 10}*vector, normalize=minmax)" for at in range(9)]
    names += ["fts", "recency alone", "W" * 90]
    means = [0.5 + at / 1000 for at in range(10)] + [0.02, 0.51]
    rows = [
        row(name, mean, None if name == "fts" else paired(mean - 0.5), kind="strategy",
            cost=Cost(embedded=0, latency=Latency(2.0 + at % 4 / 50)))
        for at, (name, mean) in enumerate(zip(names, means, strict=True))
    ]  # fmt: skip
    queries = [
        QueryRow(
            f"q{at}", "q", f"a long name of a category {at % 3}", values={"fts": at / 40, "W" * 90: (40 - at) / 40}
        )
        for at in range(40)
    ]
    facts = {"signal": "W" * 60, "others": names, "current": 0.4, "chosen": 0.405}
    facts |= {"plateau_low": 0.4, "plateau_high": 0.41}
    steps = [[at / 10, 0.1375 + at / 4000, at / 10 - 0.05, at / 10 + 0.05] for at in range(11)]
    curve = Table("curve", ["weight", "value", "low", "high"], steps, facts)
    parts = [[f"a long name of a category {at}", 13, paired(at / 10 - 0.1).gain, 0.04 * at] for at in range(3)]
    sides = {"left": "fts", "right": "W" * 90}
    categories = Table("categories", ["category", "queries", "difference", "p_by_category"], parts, sides)
    rows.sort(key=lambda one: one.label != "fts")
    return write(result(*rows, queries=queries, tables=[curve, categories], entries={}), folder)[0]


def gate_page(folder):
    baseline = folder / "baseline.json"
    update(Gate.of(starter(), baseline), "bm25, moltnet", reason="first")
    return check(Gate.of(starter(), baseline)).report(folder)[0]


def some(place, every):
    """A data set with each so many of its queries."""
    dataset = load(place)
    return replace(dataset, queries=dataset.queries[::every])


def compared(place, every):
    return lambda folder: compare(some(place, every), "bm25, fts, vector", timed=False).report(folder)[0]


PAGES = {
    "gate": (gate_page, 1),
    "recommend": (lambda folder: Workbench(some(starter(), 2)).recommend(timed=False).report(folder)[0], 3),
    "learning": (lambda folder: Workbench(some(starter(), 3)).learn().report(folder)[0], 1),
    "leaderboard": (lambda folder: ROOT / "docs" / "evidence" / "tables.html", 0),
    "workshop": (compared(ROOT / "qrels" / "workshop", 1), 2),
    "locomo": (compared(DATA / "locomo", 8), 2),  # 248 queries of all its categories
}
"""How each page is made, and how many charts it has at least."""


@pytest.fixture(scope="module", params=PAGES)
def made(request, tmp_path_factory, opened_once):
    if request.param == "locomo" and not (DATA / "locomo").is_dir():
        pytest.skip("needs STEELYARD_DATA")
    make, charts = PAGES[request.param]
    return make(tmp_path_factory.mktemp("page")), charts


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_every_page_fits_has_no_colliding_labels_and_nothing_for_axe(browser, made, width, scheme):
    path, charts = made
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(path.as_uri())
    if width == 390:
        assert measured(page, "answer") < 6 * SCREEN
    measured(page, "unfold")
    if width == 390:
        assert max(measured(page, "edges")) <= 2
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert set(measured(page, "cut")) <= {0}
    assert page.locator("svg").count() >= charts
    assert measured(page, "overlaps") == []
    assert axe.serious(page) == {}
    page.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_no_label_of_a_crowded_chart_covers_another_or_leaves_it(browser, tmp_path, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(crowded_page(tmp_path).as_uri())
    measured(page, "unfold")
    assert page.locator("svg").count() >= 3
    assert measured(page, "overlaps") == []
    page.close()


def test_on_paper_there_is_no_control(show, report):
    page = show(report[0])
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator(".controls").first.is_visible()
    assert page.locator("#leaderboard table").is_visible()


def test_a_text_has_the_direction_of_its_first_letter(show, tmp_path):
    page = show(write(result(text="איפה הגיבוי?"), tmp_path)[0])
    turned = "all => all.map((one) => getComputedStyle(one).direction)"
    assert set(page.locator("#explorer .open bdi, #leaderboard tbody th").evaluate_all(turned)) == {"rtl"}


def test_nothing_that_the_data_say_is_run(show, tmp_path):
    poisoned = write(result(text=PLANTED), tmp_path)[0]
    page = show(poisoned)
    page.locator(".open").first.click()
    assert page.title() == f"Search strategies on {PLANTED}"  # as text: nothing has set another
    assert page.locator("img").count() == 0
    assert PLANTED in page.locator("#explorer .two").inner_text()
    assert page.told == []
    assert page.requested == [poisoned.as_uri()]
