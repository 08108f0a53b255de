"""What the gate says of false answers and of what a floor loses."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from steelyard.finish import parse_stages
from steelyard.systems import find_system
from steelyard_eval.cli.main import main
from steelyard_eval.gate.rule import kept_promise, sign_test_increase


def false_answers(now, before, asked):
    return sign_test_increase("gate_false_answers", now, before, asked, 0.04)


@pytest.mark.parametrize(
    ("came", "went", "verdict"),
    # of 100: the sign test has 1/32 for 5 of 5 and 1/16 for 4 of 4; 4 of 100 is not within .04 at 90%, 0 is
    [(5, 0, "fail"), (4, 0, "inconclusive"), (0, 3, "pass"), (3, 3, "pass"), (1, 0, "pass")],
)
def test_false_answers_are_tested_by_sign(came, went, verdict):
    before = {f"q{at}" for at in range(10)}
    now = {f"q{at}" for at in range(went, 10)} | {f"new{at}" for at in range(came)}
    found = false_answers(now, before, 100)
    assert found.verdict == verdict
    if came > went:
        p = stats.binomtest(came, came + went, 0.5, alternative="greater").pvalue
        assert found.facts["p"] == pytest.approx(p)


def test_a_promise_is_broken_where_student_says_so():
    rng = np.random.default_rng(0)
    lost = rng.uniform(0, 0.5, size=60)  # the mean is about .25
    assert stats.ttest_1samp(lost, 0.1, alternative="greater").pvalue < 0.05
    assert kept_promise(0.1, lost, np.arange(60)).verdict == "fail"
    assert kept_promise(0.9, lost, np.arange(60)).verdict == "pass"
    assert kept_promise(0.1, lost, np.zeros(60, dtype=int)).verdict == "inconclusive"  # a single unit
    few = lost[:60] - lost[:60].mean() + 0.101
    assert kept_promise(0.1, few, np.arange(60)).verdict == "inconclusive"


@pytest.fixture
def folder(tmp_path):
    """Thirty entries, a query for each, and as many questions whose words are in every entry."""
    place = tmp_path / "mine"
    place.mkdir()
    names = [f"word{chr(97 + at)}" for at in range(26)]
    corpus = [{"id": name, "text": f"{name} stands here"} for name in names]
    asked = [{"id": f"q{at}", "text": name} for at, name in enumerate(names)]
    asked += [{"id": f"n{at}", "text": f"stands {at}", "answerable": False} for at in range(26)]
    for name, rows in (("corpus", corpus), ("queries", asked)):
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "qrels.txt").write_text("".join(f"q{at} 0 {name} 1\n" for at, name in enumerate(names)))
    (place / "dataset.json").write_text(json.dumps({"name": "mine", "licence": "CC0-1.0", "as_of": "2026-01-01"}))
    return place


def test_a_gate_that_starts_to_answer_what_has_no_answer_fails(folder, tmp_path, capsys):
    base = tmp_path / "base.json"
    words = ["gate", str(folder), "--baseline", str(base), "--embedder", "none"]
    weights = tmp_path / "search-weights.json"
    config = find_system("bm25").config(10, "", {})
    floor = parse_stages(["floor(0.5, on=weighted_sum(1*bm25, normalize=theoretical))"])
    replace(config, finish=(*config.finish, *floor)).save(weights)
    capsys.readouterr()
    assert main([*words, f"mine={weights}", "--update", "--because", "begun"], standalone_mode=False) in (0, None)
    assert len(json.loads(base.read_text())["contenders"][0]["answered"]) == 0
    config.save(weights)
    with pytest.raises(SystemExit) as ended:
        main([*words, f"mine={weights}"], standalone_mode=False)
    assert ended.value.code == 1
    assert "26 of 26 questions" in " ".join(capsys.readouterr().out.split())


def test_one_new_answer_of_few_is_open_and_says_how_to_accept_it(folder, tmp_path, capsys):
    """1/48 + 1.2816 * sqrt(1 - 1/48) / 48 = .047, above .04; of 57, 1/57 + 1.2816 * .9912 / 57 = .0398."""
    found = false_answers({"a"}, (), 48)
    assert found.verdict == "inconclusive"
    assert found.facts == {"now": 1, "asked": 48, "before": 0, "p": 0.5, "budget": 0.04}
    assert false_answers({"a"}, (), 57).verdict == "pass"
    lists = [f"q{at} Q0 word{chr(97 + at)} 1 1 x\n" for at in range(26)]
    lists += [f"n{at} Q0 worda 1 1 x\n" for at in range(26)]
    then, now = (tmp_path / name for name in ("then.run", "now.run"))
    then.write_text("".join(lists[:-1]))
    now.write_text("".join(lists))
    words = ["gate", str(folder), "--baseline", str(tmp_path / "base.json")]
    main([*words, f"r={then}", "--update", "--because", "begun"], standalone_mode=False)
    capsys.readouterr()
    main([*words, f"r={now}"], standalone_mode=False)
    told = " ".join(capsys.readouterr().out.split())
    assert "accept it, update" in told
    assert "more questions that" in told
    assert "has labels" not in told
    then.write_text(now.read_text())
    main([*words, f"r={then}"], standalone_mode=False)
    assert "accept it: steelyard gate" in " ".join(capsys.readouterr().out.split())


def test_lists_that_show_what_was_replaced_are_told(tmp_path, capsys):
    """Ten pairs of an entry and what took its place, equally relevant: the list is turned round in each."""
    place = tmp_path / "mine"
    place.mkdir()
    names = [f"word{chr(97 + at)}" for at in range(10)]
    corpus = [{"id": f"a{name}", "text": f"{name} stands", "superseded_by": f"b{name}"} for name in names]
    corpus += [{"id": f"b{name}", "text": f"{name} stands"} for name in names]
    (place / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    asked = [{"id": f"q{at}", "text": name} for at, name in enumerate(names)]
    (place / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    (place / "qrels.txt").write_text(
        "".join(f"q{at} 0 a{name} 1\nq{at} 0 b{name} 1\n" for at, name in enumerate(names))
    )
    (place / "dataset.json").write_text(json.dumps({"name": "mine", "licence": "CC0-1.0", "as_of": "2026-01-01"}))
    runs = {"now.run": "ab", "then.run": "ba"}
    for name, order in runs.items():
        lines = [
            f"q{at} Q0 {one}{word} {rank} {3 - rank} x\n"
            for at, word in enumerate(names)
            for rank, one in enumerate(order, 1)
        ]
        (tmp_path / name).write_text("".join(lines))
    words = ["gate", str(place), "--baseline", str(tmp_path / "baseline.json")]
    main([*words, f"r={tmp_path / 'then.run'}", "--update", "--because", "begun"], standalone_mode=False)
    with pytest.raises(SystemExit) as ended:
        main([*words, f"r={tmp_path / 'now.run'}"], standalone_mode=False)
    assert ended.value.code == 1
    told = " ".join(capsys.readouterr().out.split())
    # The values are equal, and t(.9, 9) * .35 / sqrt(9 * 10) = .051 is above the budget of .04.
    assert "(+0.000 nDCG@10); 10" in told
