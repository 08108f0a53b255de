"""The explorer and the judging widget in a real JupyterLab: keys, mouse, files, a killed kernel, no way out."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import steelyard_eval as sy
from steelyard import SearchConfig, find_system, parse_strategy
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.notebook.label.judgment_file import read_judgments

from . import axe

PAIRS = 50


@pytest.fixture(scope="module")
def explorer(lab):
    """The cells of notebook 02 up to the explorer, without what is tuned, run on starter; the explorer in them."""
    path = lab.folder / "notebooks" / "02-which-weights.ipynb"
    notebook = json.loads(path.read_text())
    sources = ["".join(cell["source"]) for cell in notebook["cells"]]
    last = next(at for at, source in enumerate(sources) if "data.explore(" in source)
    chosen = notebook["cells"][: last + 1]
    for cell in chosen:
        lines = [line for line in cell["source"] if "tuned" not in line]
        cell["source"] = "".join(lines).replace("sy.demo()", f"sy.load({str(starter())!r})")
    path.write_text(json.dumps(notebook | {"cells": chosen}))
    page = lab.open("notebooks/02-which-weights.ipynb")
    page.wait_for_selector(".sy-mean:not(:empty)")
    if pictures := os.environ.get("STEELYARD_PICTURES"):  # make pictures
        page.wait_for_function("document.querySelector('.sy-explorer').dataset.curves")
        page.locator(".sy-explorer").screenshot(path=Path(pictures) / "explorer.png")
    yield page
    page.close()


@pytest.fixture(scope="module")
def expected():
    """The mean nDCG@10 of echovault on the queries to choose on, by replay in this process."""
    data = sy.load(starter())

    def value(weight):
        text = f"tiered(fts, min_results=3, then=weighted_sum({weight:g}*fts, 0.7*vector, normalize=max))"
        config = find_system("echovault").config(10, data.workspace.model).with_strategy(parse_strategy(text))
        found = data.compare({"x": config}, metrics="nDCG@10", split="train", timed=False)
        return float(found.values["x"]["nDCG@10"].mean())

    return value


def shown(page):
    return float(page.locator(".sy-mean").get_attribute("data-value"))


def settle(page, text):
    """Wait until the strategy that is shown holds a text."""
    field = "document.querySelector('[aria-label^=\"strategy\"]').value"
    page.wait_for_function(f"text => {field}.includes(text)", arg=text)


def test_keys_step_a_weight_and_show_what_python_computes(explorer, expected):
    slider = explorer.get_by_label("weight of fts", exact=True)
    slider.press("End")
    settle(explorer, "weighted_sum(1*fts")
    for _ in range(5):
        slider.press("ArrowLeft")
    settle(explorer, "weighted_sum(0.95*fts")
    assert shown(explorer) == pytest.approx(expected(0.95), abs=1e-12)
    explorer.wait_for_function("document.querySelector('.sy-explorer').dataset.curves === '2'")
    assert "unchanged from" in explorer.locator(".sy-note").first.inner_text()


def test_long_queries_push_nothing_out_of_the_picture(explorer):
    out = explorer.evaluate("""() => {
      const right = document.querySelector('.sy-explorer').getBoundingClientRect().right;
      return [...document.querySelectorAll('.sy-columns > *, .sy-columns button, .sy-lists > *')]
        .filter((one) => one.getBoundingClientRect().right > right).length;
    }""")
    assert out == 0


def test_a_key_changes_the_ranking_of_a_query_that_moved(explorer, expected):
    explorer.locator(".sy-list-best button").first.click()
    explorer.wait_for_function("document.querySelector('.sy-queryFacts').textContent !== ''")
    ranking = explorer.locator(".sy-now").inner_text()
    explorer.get_by_label("weight of fts", exact=True).press("Home")
    settle(explorer, "weighted_sum(0*fts")
    assert explorer.locator(".sy-now").inner_text() != ranking
    assert shown(explorer) == pytest.approx(expected(0), abs=1e-12)


def test_the_mouse_drags_a_weight(explorer, expected):
    slider = explorer.get_by_label("weight of fts", exact=True)
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    explorer.mouse.move(box["x"] + box["width"] * 0.95, middle)
    explorer.mouse.down()
    for share in np.linspace(0.95, 0.4, 12):
        explorer.mouse.move(box["x"] + box["width"] * share, middle)
    explorer.mouse.up()
    explorer.wait_for_function("document.querySelector('.sy-explorer').dataset.curves === '2'")
    weight = float(slider.input_value())
    assert 0.3 < weight < 0.5
    settle(explorer, f"weighted_sum({weight:g}*fts")
    assert shown(explorer) == pytest.approx(expected(weight), abs=1e-12)


def test_adopting_writes_a_file_that_loads(explorer, lab):
    weight = float(explorer.get_by_label("weight of fts", exact=True).input_value())
    explorer.get_by_label("file to write").fill("by-hand.json")
    explorer.get_by_role("button", name="adopt").click()
    explorer.get_by_text("marked as chosen by hand").wait_for()
    config = SearchConfig.load(lab.folder / "notebooks" / "by-hand.json")
    assert config.strategy.weights == (weight, 0.7)
    assert config.provenance["chosen_by"] == "hand"
    assert config.provenance["promise"]["metric"] == "nDCG@10"


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_axe_finds_no_serious_violation_in_the_explorer(explorer, lab, theme):
    lab.paint(explorer, theme)
    assert axe.serious(explorer, ".sy-explorer") == {}


def test_hostile_texts_are_shown_as_text(explorer):
    box = explorer.get_by_label("strategy; Enter applies it")
    box.fill("<img src=x onerror=\"document.title='pwned'\">")
    box.press("Enter")
    explorer.get_by_role("alert").filter(has_text="onerror").wait_for()
    assert explorer.locator(".sy-explorer img").count() == 0
    assert "pwned" not in explorer.title()


@pytest.fixture(scope="module")
def both(lab):
    """An explorer of ten signals, and below it the judging widget, in one cell; the last test ends its kernel."""
    signals = "bm25, vector, graph, recency, importance, tags, domain, severity, tfidf, cosine"
    formula = f"weighted_sum(0.1*{signals.replace(', ', ', 0.1*')}, normalize=minmax)"
    code = f"data = sy.load({str(starter())!r})\ndisplay(data.explore({formula!r}))\n"
    return lab.open(lab.write("judge.ipynb", f'{code}data.judge("bm25, rrf(bm25, vector)", "judged")'))


def test_the_sliders_of_ten_signals_are_on_one_screen_with_the_number_that_they_change(both):
    both.wait_for_selector(".sy-mean:not(:empty)")
    mean, last = both.locator(".sy-mean").bounding_box(), both.locator(".sy-weight").nth(9).bounding_box()
    assert 0 < last["y"] + last["height"] - mean["y"] < 800


def test_fifty_pairs_survive_a_killed_kernel(lab, both):
    page = both
    root = page.locator(".sy-judge")
    root.locator(".syj-keys button").first.wait_for()
    root.focus()
    path = lab.folder / "judged" / "judge.jsonl"
    given = []
    for at in range(PAIRS):
        pair = json.loads(root.get_attribute("data-pair"))
        page.keyboard.press(str(at % 4))
        page.wait_for_function(f"document.querySelector('.sy-judge').dataset.given === '{at + 1}'")
        given.append((*pair, at % 4))
        assert [(one.query, one.entry, one.grade) for one in read_judgments(path).values()] == given
    asked = root.get_attribute("data-pair")
    for key, same in (("ArrowUp", "!=="), ("j", "===")):  # to the entry above the cursor, and back
        page.keyboard.press(key)
        page.wait_for_function(f"pair => document.querySelector('.sy-judge').dataset.pair {same} pair", arg=asked)
    current = root.locator("[aria-current] b").inner_text()
    assert current in root.locator(".syj-list b").all_inner_texts()[1:]
    root.locator(".syj-list li").first.click()
    page.wait_for_function("pair => document.querySelector('.sy-judge').dataset.pair !== pair", arg=asked)
    root.focus()
    if pictures := os.environ.get("STEELYARD_PICTURES"):  # make pictures
        root.screenshot(path=Path(pictures) / "judging.png")
    assert axe.serious(page, ".sy-judge") == {}
    (kernel,) = [one["kernel"]["id"] for one in lab.sessions() if one["path"] == "judge.ipynb"]
    os.kill(lab.process_of(kernel), signal.SIGKILL)
    page.close()

    judge = sy.load(starter()).judge("bm25, rrf(bm25, vector)", lab.folder / "judged")
    assert [(one.query, one.entry, one.grade) for one in judge.session.given.values()] == given
    assert judge.session.next not in {(query, entry) for query, entry, _ in given}


def test_no_request_left_the_machine(lab):
    assert lab.foreign == []
    assert lab.requests > 100
