"""The gate from end to end, on a small data set that each test can change: verdicts, exit codes, refusals."""

import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from shared import STARTER, document, done, tabled

import steelyard_eval as sy
from steelyard.base.files import STRICT_JSON
from steelyard.systems import find_system
from steelyard_eval.datasets.dataset import hashed
from steelyard_eval.gate.baseline import SEAL
from steelyard_eval.gate.lists import read_contenders, run as run_all
from steelyard_eval.gate.setup import Gate, alike, data_hashes, runs, scores_hash, settled_hash
from steelyard_eval.result.structs import Estimate
from steelyard_eval.views.sheets import sheets

SUM = "weighted_sum(0.4*bm25, 0.6*vector, normalize=minmax)"


@pytest.fixture(scope="module")
def committed(data, tmp_path_factory):
    """A baseline of two contenders, never written to."""
    path = tmp_path_factory.mktemp("committed") / "baseline.json"
    data.update_baseline(["bm25", SUM], reason="first", baseline=path)
    return path


@pytest.fixture
def baseline(committed, tmp_path):
    """A copy of it that a test may change."""
    return Path(shutil.copy(committed, tmp_path))


def rows(found, key):
    """The rows of a table of a result."""
    return found.result.table(key)


def checks(found):
    """How the contenders were held against the baseline."""
    return {row["check"] for row in rows(found, "gate_check")}


def headings(found):
    """Those of the columns that may have intervals."""
    columns = [column for sheet in sheets(found.result, short=True) for column in sheet.columns]
    return [column.name for column in columns if column.key in ("interval", "change")]


def against(found, side="baseline"):
    """What the rule saw of the first contender."""
    return next(row for row in rows(found, "gate_rule") if row["side"] == side)


def changed(path, change):
    """Change the record of a baseline and seal it again, as our own program would have written it."""
    record = STRICT_JSON.decode(path.read_text())
    record.pop(SEAL)
    change(record)
    path.write_text(json.dumps({**record, SEAL: hashed(record)}))


def first_list(record):
    return record["contenders"][0]["lists"][0]


@pytest.fixture
def based(data, tmp_path):
    """Writes a baseline of its own for contenders."""
    path = tmp_path / "own.json"

    def write(contenders, **more):
        return data.update_baseline(contenders, baseline=path, **{"reason": "meant", **more})

    return write


def editable(folder):
    """A copy of the starter set, without the hashes of its files."""
    shutil.copytree(STARTER, folder)
    about = json.loads((folder / "dataset.json").read_text())
    (folder / "dataset.json").write_text(json.dumps({**about, "files": {}, "counts": {}}))
    return folder


def alone(data):
    """The gate of a data set that has no baseline."""
    return Gate.of(data.dataset, "none.json", opened=lambda _: data.workspace)


@pytest.fixture(scope="module")
def lists(data):
    """Ids that bm25 and vector find, down to place 100: name -> query -> ids."""
    queries = data.dataset.split()
    answers = run_all(alone(data), read_contenders("bm25, vector"))
    return {
        own.label: {query.id: [id_ for id_, _ in far] for query, far in zip(queries, own.deep, strict=True)}
        for own in answers
    }


def worse(data, lists, share, seed=0):
    """A function that answers like bm25, and with nothing relevant in front for a share of the queries."""
    rng = np.random.default_rng(seed)
    found = {}
    for query, own in lists["bm25"].items():
        bad = [id_ for id_ in own if data.dataset.qrels[query].get(id_, 0) == 0]
        found[query] = bad[:20] if rng.random() < share else own
    return lambda query: found[query.id]


def test_an_unchanged_tree_passes_by_identity(data, baseline):
    found = data.gate(baseline=baseline)
    assert (found.verdict, checks(found), found.result.answer.facts["many"]) == ("pass", {"identity"}, 2)
    assert [row["lists_changed"] for row in rows(found, "gate_check")] == [0, 0]
    # equal lists have no difference and no interval, and the heading promises none
    changes = [row[key] for key in ("gated", "gate_rule") for row in rows(found, key) for key in ["change"]]
    assert changes == [Estimate(0.0)] * 6
    assert (found.result.rows[0].gain, headings(found)) == (Estimate(0.0), ["nDCG@10", "change"])


def test_one_ulp_of_one_score_is_told(data, baseline):
    """The hash is computed as if one score of the first list were the next float."""
    answers = run_all(alone(data), read_contenders([SUM]))[0]
    own = [*answers.lists[0]]
    own[3] = own[3][0], math.nextafter(own[3][1], 2)
    planted = {"scores_hash": scores_hash(own, answers.deep[0])}
    changed(baseline, lambda record: record["contenders"][1]["lists"][0].update(planted))
    found = data.gate(baseline=baseline)
    first = found.result.findings[0]
    assert (found.verdict, first.key) == ("fail", "gate_differs")
    assert (first.facts["scores"], first.facts["queries"]) == (True, 1)


@pytest.mark.parametrize("name", ["sources", "configuration"])
def test_changed_scores_pass_and_are_told_where_something_changed(data, baseline, name):
    def change(record):
        first_list(record)["scores_hash"] = "0" * 32
        (record["hashes"] if name == "sources" else record["contenders"][0])[name] = "0" * 64

    changed(baseline, change)
    found = data.gate("bm25", baseline=baseline)
    assert (found.verdict, checks(found)) == ("pass", {"quality"})
    assert (found.result.findings[0].key, found.result.findings[0].facts["scores"]) == ("gate_unchanged", 1)


def test_another_platform_may_differ_in_the_last_bits_of_scores(data, baseline):
    def plant(record):
        record["platform"] = "another machine"
        first_list(record)["scores_hash"] = "0" * 32
        first_list(record)["first"][0][1] *= 1 + 5e-7

    changed(baseline, plant)
    assert data.gate("bm25", baseline=baseline).verdict == "pass"

    changed(baseline, lambda record: first_list(record)["first"][0].__setitem__(1, 99.0))
    found = data.gate("bm25", baseline=baseline)
    assert (found.verdict, found.exit_code(), checks(found)) == ("mismatch", 2, {"identity"})
    assert any("another machine" in notice for notice in found.notices)
    assert "--update" in found.result.answer.steps[0].command


def test_ties_may_change_places_on_another_platform_and_nothing_else():
    """a and b are as good as equal, and d, the last, may change places with an entry that is not shown."""
    kept = [("a", 0.9), ("b", 0.9 - 1e-7), ("c", 0.5), ("d", 0.2)]
    ties = (runs(kept),)
    assert ties == (((0, 2), (3, 4)),)
    for ids, equal in (("abcd", True), ("bacd", True), ("abce", True), ("acbd", False), ("abdc", False)):
        now = [(id_, 1.0) for id_ in ids]
        assert (settled_hash([now], ties) == settled_hash([kept], ties)) is equal
    assert [alike([("a", 0.5)], [("a", 0.5 + by)]) for by in (9e-7, 1.1e-6)] == [True, False]


def test_a_list_that_changed_by_itself_fails(data, baseline):
    changed(baseline, lambda record: first_list(record).update(list_hash="0" * 32))
    found = data.gate("bm25", baseline=baseline)
    assert "not deterministic" in found.sentence
    assert (found.result.findings[0].key, found.result.findings[0].facts["lists"]) == ("gate_differs", True)


def test_worse_fails_with_1_and_shows_the_queries_that_lost(data, lists, baseline):
    better = done("gate", STARTER, "bm25=vector", "--baseline", baseline)  # as compare says
    assert "; 1 in 60 that" in " ".join(better.stdout.split())
    assert "see why" in done("gate", STARTER, "bm25=cortex_mem", "--baseline", baseline, code=1).stdout

    found = data.gate({"bm25": worse(data, lists, 0.4)}, baseline=baseline)

    now, before = found.result.rows[:2]
    assert (found.verdict, found.exit_code(), headings(found)) == ("fail", 1, ["nDCG@10", "change [95%]"])
    assert now.means["nDCG@10"].mean - before.means["nDCG@10"].mean == pytest.approx(now.gain.mean)
    falls = [row["now"] - row["before"] for row in rows(found, "lost")]
    assert falls == sorted(falls)
    query = next(query for query in found.result.queries if query.id == rows(found, "lost")[0]["query"])
    assert query.lists["bm25"] != query.lists[before.label]
    assert min(query.values["bm25"] - query.values[before.label] for query in found.result.queries) == falls[0]


def test_what_is_ruled_out_has_its_own_range(data, lists, baseline):
    """The interval is of 95% on both sides; what passes is a bound of 90% on one, which lies nearer."""
    passed, open_ = (
        data.gate({"bm25": worse(data, lists, *how)}, baseline=baseline) for how in ((0.04, 1), (0.02, 0))
    )
    facts = passed.result.findings[0].facts
    assert (passed.verdict, facts["gain"].low < -facts["excluded"]) == ("pass", True)
    assert 0 < facts["upper"] == against(passed)["upper"] < facts["excluded"] == 0.04
    assert f"at most {facts['upper']:.3f} (90% sure, one-sided)" in passed.sentence
    facts = open_.result.findings[0].facts
    assert (open_.verdict, facts["reach"]) == ("inconclusive", against(open_)["upper"])
    assert facts["reach"] > facts["open"] == 0.04


def test_changed_labels_are_a_mismatch_with_both_hashes_and_the_command(baseline, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")  # what is folded is not found
    other = editable(tmp_path / "other")
    first, *rest = (other / "qrels.txt").read_text().splitlines()
    lines = [first[:-1] + "0", *rest, "q03 0 infra-k3s 0"]  # one changed, one added
    (other / "qrels.txt").write_text("\n".join(lines) + "\n")

    ask = ("gate", other, "--baseline", baseline)
    text = " ".join(done(*ask, code=2).stdout.split())
    before = STRICT_JSON.decode(baseline.read_text())["hashes"]["labels"]
    changed_set = sy.load(other).dataset
    now = data_hashes(changed_set, changed_set.split("all"))["labels"]
    assert "1 added ('q03 infra-k3s'), 1 changed ('q01 api-pool-exhaustion')" in text
    assert before[:12] in text and now[:12] in text and "corpus" not in text
    assert f"steelyard gate {other} --baseline {baseline} --update --reason" in text
    whole = sy.load(other).gate(baseline=baseline).result.findings[-1]
    assert whole.facts == {"part": "labels", "before": before, "now": now}

    done(*ask, "--update", "--reason", "a label was wrong")
    done(*ask)


def test_an_update_hides_no_decline_behind_changed_labels(tmp_path, monkeypatch):
    """Labels and weights at once: refused, with nothing written; one after the other, each step is judged."""
    monkeypatch.chdir(tmp_path)
    editable(Path("mine"))
    find_system("bm25").config(10).save("search-weights.json")
    update = ("gate", "mine", "--update", "--reason")
    done(*update, "first", "search-weights.json")
    before = Path("reports/baseline.json").read_bytes()

    labels = Path("mine/qrels.txt").read_text().splitlines()
    Path("mine/qrels.txt").write_text("\n".join(labels[1:]) + "\n")
    find_system("cortex_mem").config(10).save("search-weights.json")
    refused = " ".join(done(*update, "labels fixed", code=2).stderr.split())
    assert "labels and 'search-weights.json' changed" in refused
    assert Path("reports/baseline.json").read_bytes() == before
    done(*update, "both are meant", "--accept-worse")

    Path("mine/qrels.txt").write_text("\n".join(labels) + "\n")
    done(*update, "labels alone")


@tabled
def test_a_baseline_that_was_cut_or_edited_is_refused(baseline, found, given):
    baseline.write_text(re.sub(found, lambda _: given, baseline.read_text(), count=1))
    error = done("gate", STARTER, "--baseline", baseline, code=2).stderr
    assert ("from version control" in error, "Traceback" in error) == (True, False)


def test_a_sealed_baseline_of_another_shape_and_one_that_cannot_be_read_are_refused(data, baseline):
    changed(baseline, lambda record: record["contenders"][0].update(kind=7))
    for path, told in ((baseline, r"contenders\[0\]\.kind"), (baseline / "b.json", "cannot read the baseline")):
        with pytest.raises(sy.DataError, match=told):
            data.gate(baseline=path)


def test_an_update_says_when_and_why(data, based, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    found = data.gate(baseline=based({"bm25": "vector", SUM: SUM}, reason="vectors alone"))
    (about,) = rows(found, "gate_file")
    assert (about["reason"], about["date"]) == ("vectors alone", "2027-01-15")  # date -u -d @1800000000
    assert found.verdict == "pass"
    # of vector, as compare prints it
    assert found.result.rows[1].means["nDCG@10"].mean == pytest.approx(0.7105, abs=1e-4)


def test_an_adverse_update_needs_accept_worse(data, lists, baseline):
    before = baseline.read_bytes()
    bad = {"bm25": worse(data, lists, 0.5), SUM: SUM}
    for contenders, told in ((bad, r"^bm25: -.*would hide"), ("bm25", r"update would hide")):  # one is dropped
        with pytest.raises(sy.ConfigError, match=told):
            data.update_baseline(contenders, reason="why not", baseline=baseline)
    for reason in ("", "  "):
        with pytest.raises(sy.ConfigError, match="--reason"):
            data.update_baseline(reason=reason, baseline=baseline)
    assert baseline.read_bytes() == before
    data.update_baseline(bad, reason="bm25 goes", baseline=baseline, accept_worse=True)
    assert data.gate(bad, baseline=baseline).verdict == "pass"


def test_the_baseline_before_is_kept_once_beside_it(data, baseline):
    before = baseline.read_bytes()
    copy = baseline.with_name("baseline.json.bak")
    replaced = document("gate", STARTER, "--baseline", baseline, "--update", "--reason", "oops")["replaced"]
    assert replaced == str(copy)
    assert copy.read_bytes() == before
    second = baseline.read_bytes()
    data.update_baseline(reason="once more", baseline=baseline)
    assert [path.read_bytes() for path in sorted(baseline.parent.glob("*.bak*"))] == [second]
    assert data.gate(baseline=copy).verdict == "pass"


def test_a_single_contender_takes_the_place_of_a_single_one(data, based):
    """What is better needs no --accept-worse because it has another name; what is worse does."""
    based("bm25")
    with pytest.raises(sy.ConfigError, match=r"^cortex_mem: -.*would hide"):
        based("cortex_mem")
    assert data.gate(baseline=based("vector")).result.answer.facts["alone"] == "vector"


def test_a_decline_in_small_steps_is_seen_by_the_anchor(data, lists, based):
    """Each step loses too little to fail; together they lose what a single step of that size would fail for."""
    judged = data.dataset.qrels

    def step(share):
        """Answers whose best relevant entry falls by two places for a share of the queries."""
        found = {}
        for at, (query, ids) in enumerate(lists["vector"].items()):
            relevant = next((place for place, id_ in enumerate(ids) if judged[query].get(id_, 0) > 0), None)
            moved = list(ids)
            if relevant is not None and at % 30 < share:
                moved.insert(relevant + 1, moved.pop(relevant))
            found[query] = moved
        return {"mine": lambda query: found[query.id]}

    own, verdicts = based(step(0)), []
    for share in range(1, 10):
        found = data.gate(step(share), baseline=own)
        verdicts.append([against(found, side)["verdict"] for side in ("baseline", "anchor")])
        if found.verdict == "fail":
            break
        based(step(share))

    assert verdicts[-1][1] == "fail"
    assert [step[0] for step in verdicts if step[0] == "fail"] == [], verdicts
    assert found.result.findings[0].key == "gate_anchor"
    accepted = {"reason": "wanted", "baseline": own, "accept_worse": True}  # which no single step has to fail for
    data.update_baseline(step(share - 1), **accepted)
    assert data.gate(step(share), baseline=own).verdict != "fail"


def test_the_anchor_moves_up_with_what_is_significantly_better(data, based):
    based({"mine": "bm25"})
    own = based({"mine": "moltnet"})
    now, before = data.gate({"mine": "moltnet"}, baseline=own).result.rows  # it is its own anchor
    assert before.means["nDCG@10"].mean == pytest.approx(0.7427, abs=1e-4)  # of moltnet, as compare prints it
    assert now.means["gain@100"].mean == pytest.approx(before.means["gain@100"].mean)


def test_a_contender_that_the_baseline_does_not_know_is_an_error(data, baseline):
    (first, *_) = json.loads(baseline.read_text())["contenders"]
    named = re.escape(f"before it, as in '{first['label']}=fts'")
    with pytest.raises(sy.ConfigError, match=f"'fts' is not in the baseline.*{named}"):
        data.gate("fts", baseline=baseline)
    assert data.gate(f"{first['label']}=fts", baseline=baseline).verdict != "mismatch"


def test_a_promise_that_was_kept_and_is_broken_fails_whatever_the_relevance(data, lists, based):
    entries, kept = data.dataset.entries, lists["vector"]
    outside = {
        query.id: [next(entry.id for entry in entries if query.filters.failed(entry))]
        for query in data.dataset.split()
        if query.filters
    }
    assert outside
    own = based({"mine": lambda query: kept[query.id]})
    leaking = {"mine": lambda query: [*kept[query.id][:9], *outside.get(query.id, [])]}
    found = data.gate(leaking, baseline=own)

    assert (found.verdict, found.result.findings[0].key) == ("fail", "gate_invariant")
    seen = against(found)
    word = {"fail": "fell", "pass": "rose" if seen["decided_by"] == "better" else "held"}[seen["verdict"]]
    assert found.sentence.startswith(f"Fail: mine: quality {word} (")  # what everybody asks first
    assert found.result.findings[0].facts["promises"] == ["scope"]


@tabled
def test_a_broken_weights_file_is_no_verdict_and_the_comment_says_why(tmp_path, monkeypatch, old, new, rule):
    monkeypatch.chdir(tmp_path)
    file = Path("search-weights.json")
    find_system("bm25").config(10).save(file)
    done("gate", STARTER, file, "--update", "--reason", "first")
    file.write_text(file.read_text().replace(old, new))
    done("gate", STARTER, "--markdown", "comment.md", code=2)
    said = Path("comment.md").read_text()
    assert said.count("search-weights.json") == 1
    assert rule in said.partition("from version control")[0]  # the fault comes first, then the remedy


def test_slices_are_shown_and_block_where_asked(data, lists, based):
    categories = [query.category for query in data.dataset.split()]
    category = max(sorted(set(categories)), key=categories.count)
    found_by, judged = lists["vector"], data.dataset.qrels

    def collapsed(query):
        own = found_by[query.id]
        return own if query.category != category else [i for i in own if judged[query.id].get(i, 0) == 0]

    own = based({"mine": lambda query: found_by[query.id]})
    for blocks, verdict in ((True, "fail"), (False, "pass")):
        found = data.gate({"mine": collapsed}, baseline=own, block_slices=blocks)
        assert category in [row["value"] for row in rows(found, "gate_slices") if row["fell"]]
        assert any(one.key == "gate_slice" and one.verdict == verdict for one in found.result.findings)
