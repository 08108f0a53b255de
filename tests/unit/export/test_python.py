"""The exported Python file, alone in a bare interpreter, against live search: the same ids and scores.

Every file is run by ``python -I -S``, which has nothing but the standard library, on the lists of a signal table.
"""

import json
import math
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from shared import beside, tabled

from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.finish import parse_stages
from steelyard.fusion import FAMILIES, Signal, parse_strategy
from steelyard.live.search import rank_table
from steelyard.retrievers import RETRIEVERS
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard.systems import SYSTEMS, find_system
from steelyard.table.signal_table import ranks
from steelyard.testing import random_table, select_rows
from steelyard_eval.export import export

WORDS = beside(__file__)
RUNNER = """
import inspect, json, sys
for line in sys.stdin:
    text, given = json.loads(line)
    made = {"__name__": "exported"}
    exec(text, made)
    print(json.dumps(made["rank"](*(given[name] for name in inspect.signature(made["rank"]).parameters))))
"""


def ran(cases):
    """What the files return, each a text with the arguments by their names."""
    asked = "\n".join(map(json.dumps, cases))
    bare = [sys.executable, "-I", "-S", "-c", RUNNER]
    done = subprocess.run(bare, input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [[tuple(pair) for pair in json.loads(line)] for line in done.stdout.splitlines()]


def given(table, config, intent):
    """The arguments of a file for the only query of a table: its lists, and the values of other signals."""
    ids = [table.entries[at] for at in table.entry]
    rows = {name: dict(zip(ids, column.tolist(), strict=True)) for name, column in table.columns.items()}
    listed = {n: [(id_, s) for id_, s in rows.get(n, {}).items() if not math.isnan(s)] for n in RETRIEVERS}
    read = [config.effective, *(expr for stage in config.finish for expr in stage._strategies())]
    for node in {node for expr in read for node in expr.walk() if isinstance(node, Signal)}:
        rows.setdefault(str(node), {})
        if node.name not in table.columns and node.name not in RETRIEVERS:
            rows[str(node)] = dict(zip(ids, node.derived(table).values.tolist(), strict=True))
    homes = [] if table.directory is None else zip(table.entries, table.directory, strict=True)
    known = {name: float(values[0]) for name, values in table.query_facts.numbers.items()}
    return {
        "lists": {name: sorted(found, key=lambda pair: -pair[1]) for name, found in listed.items()},
        "values": rows,
        "intent": intent,
        "directory": {id_: table.entries[at] for id_, at in homes if table.entries[at] != id_},
        "terms": next(iter(rows.get("terms", {}).values()), 1),
        "ends": {name: (known.get(f"low {name}"), known.get(f"high {name}")) for name in RETRIEVERS},
    }


def expect_equal(cases, wanted):
    """The same ids in the same order, and scores to 1e-12; returns the share of lists with the same bits."""
    found = ran(cases)
    for (text, _), own, want in zip(cases, found, wanted, strict=True):
        assert [id_ for id_, _ in own] == [id_ for id_, _ in want], text
        assert [s for _, s in own] == pytest.approx([s for _, s in want], rel=1e-12, abs=1e-12), text
    return np.mean([own == want for own, want in zip(found, wanted, strict=True)])


@pytest.mark.parametrize("name", sorted({*SYSTEMS} - {"spec_kit:newest"}))  # which has a stage that reads vectors
def test_a_file_ranks_as_live_search_does(name, data):
    """In at most 60 lines, but for the eight strategies of one system and the six layered ones of another."""
    search = data.searcher(name, limit=10)
    found = [search(query.id) for query in list(data.dataset.queries)[:40]]
    config, results = found[0].contender.config, [one.result for one in found]
    text = str(export(config, "python"))
    cases = [(text, given(result.table, config, result.query.intent)) for result in results]
    wanted = [[(hit.entry.id, hit.score) for hit in result.hits] for result in results]
    assert any(wanted)
    assert text.count("\n") <= {"shipped": 80, "newest": 120}.get(name.partition(":")[2], 60)
    assert expect_equal(cases, wanted) > (0.9 if "gated" in text else 0.999)  # numpy rounds exp() otherwise


def made(rng, dealt, kind, depth=3):
    """A strategy of random parts, lists at the bottom; no part is dealt again before all of its kind were."""
    kind, depth = ("fusions", depth - 1) if kind == "part" else (kind, depth)
    kind = "lists" if kind == "fusions" and depth < 0 else kind
    dealt[kind] = dealt.get(kind) or rng.permutation(WORDS[kind]).tolist()
    return re.sub(r"{(\w+)}", lambda match: made(rng, dealt, match[1], depth), dealt[kind].pop())


def random_case(rng, dealt, kind="fusions"):
    """A configuration, its file with what it is given, and the ranking of the engine.

    The table is of one query: lists without gaps, at any depth, and entries in directories.
    """
    deep = {name: int(rng.integers(1, 16)) for name in sorted(RETRIEVERS) if name[0] not in "lu"}  # no layers
    depths = {name: RetrieverConfig(deep.get(name)) for name in RETRIEVERS}
    stages = parse_stages([*rng.choice(WORDS["stages"], rng.integers(0, 3), replace=False).tolist(), "cut(9)"])
    config = SearchConfig("plain", "documented", 9, parse_strategy(made(rng, dealt, kind)), depths, stages)
    table = random_table(rng, 1, 15, ties=bool(rng.random() < 0.7))
    for name, values in table.columns.items():
        if name in ("inside", "lexical", "terms"):
            values[:] = rng.integers(1, 20) if name == "terms" else values > 0
    for name, places in table.positions.items():
        places[:] = np.nan_to_num(ranks(table, table.columns[name], ~np.isnan(table.columns[name])))
    ends = {"low bm25": 0.0, "high bm25": 2.5, "low vector": -1.0, "high vector": 1.0}
    table.query_facts.numbers.update({name: np.full(1, end) for name, end in ends.items()})
    homes = np.arange(len(table.entries), dtype=np.int32)
    homes[rng.random(len(homes)) < 0.4] = 0
    text, table = str(export(config, "python")), replace(table, directory=homes).at_depth(config.depths)
    read = [table.columns[name] for name in re.findall(r"lists\['(\w+)'\]", text)]
    table = select_rows(table, ~np.isnan(read).all(axis=0))  # a search has the rows of what it reads
    labels = table.query_facts.labels["intent"]
    _, ranking, _ = rank_table(table, config, config.strategy)
    wanted = zip([table.entries[at] for at in table.entry[ranking.row]], ranking.score.tolist(), strict=True)
    return config, (text, given(table, config, labels.words[labels.codes[0]])), list(wanted)


@pytest.mark.parametrize("count", [80, pytest.param(1_000, marks=pytest.mark.nightly)])
def test_random_strategies_rank_as_the_engine_does(count):
    """As parts are dealt, 80 have every one of the 26 kinds of fusion at least 25 times, at all depths."""
    rng, dealt = np.random.default_rng(56), {}
    configs, cases, wanted = zip(*(random_case(rng, dealt) for _ in range(count)), strict=True)
    assert {node.keyword for config in configs for node in config.strategy.walk()} >= FAMILIES.keys()
    assert expect_equal(cases, wanted) > 0.97
    _, cases, wanted = zip(*(random_case(rng, dealt, "newest") for _ in range(count)), strict=True)
    assert expect_equal(cases, wanted) > 0.97


@tabled
def test_a_file_by_hand(strategy, system, finish, lists, ranking):
    """Lists are cut at 2. Other engines, whose order ranks equal scores, have names and ids that may be code."""
    retrievers = dict.fromkeys(lists, RetrieverConfig(depth=2))
    config = SearchConfig(
        system, "documented", 9, parse_strategy(strategy, lists), retrievers, parse_stages(finish)
    )
    arguments = {"lists": lists, "directory": {"x": "d", "y": "d"}, "intent": "exec"}
    ((*found,),) = ran([(str(export(config, "python")), arguments)])
    assert found == [(id_, pytest.approx(score, abs=1e-15)) for id_, score in ranking]


@tabled
def test_what_needs_more_than_scores_is_refused(finish, why):
    config = find_system("plain").config(10)
    with pytest.raises(ConfigError, match=rf"{why}\(\d+\) "):
        export(replace(config, finish=parse_stages(finish)), "python")
