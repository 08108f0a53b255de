# ruff: noqa: E501 -- the text of a page has the lines of the page
"""One table of memory retrieval for all: docs/evidence/leaderboard.md and docs/evidence/tables.html.

    make leaderboard                          # STEELYARD_DATA names the folder of collections
    make leaderboard LEADERBOARD='--record'   # search again instead of reading the lists in reports/leaderboard
    python tests/benchmarks/leaderboard.py --check docs/evidence/leaderboard/mine

A list is recorded once, as a TREC run in reports/leaderboard; tables are made from runs alone, so that they are the
same bytes again. Times are measured with --time, kept in docs/evidence/leaderboard/timing.json, and join the pages when these
are written. A run of somebody else is a folder in docs/evidence/leaderboard with manifest.json and the run files that it names.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import leaderboard_page
import numpy as np
from by_trec_eval import oracle

from steelyard.base.errors import DataError, EmbedderError, SteelyardError, quote
from steelyard.base.files import STRICT_JSON, canonical, inside, read_bytes, read_text, write_text
from steelyard.base.json_schema import Schema
from steelyard.fusion import parse_strategy
from steelyard.retrievers import EMBEDDING
from steelyard.systems import SYSTEMS, find_system, plain_name
from steelyard_eval.choose.differences import Scored
from steelyard_eval.choose.public import DEFAULT
from steelyard_eval.choose.rule import folds
from steelyard_eval.datasets import LOGGED, load
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.measures.metrics import evaluate_lists, parse_measures
from steelyard_eval.measures.paired import mean_interval, paired
from steelyard_eval.measures.trec_runs import read_run, write_run
from steelyard_eval.recording.provenance import share
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
DOCS, LISTS = ROOT / "docs" / "evidence", ROOT / "reports" / "leaderboard"
GIVEN = DOCS / "leaderboard"
TIMING = GIVEN / "timing.json"
TABLES = GIVEN / "tables.json"
"""The tables of both pages; one that is not made anew stays as it stands, because nobody need have all the data."""
LIMIT, TIMED = 10, 100
BASELINE, TUNED = "bm25", "tuned (nested)"
MEASURES = parse_measures(["nDCG@10", "R@5", "R@10", "Success@5", "RR@10"])
SHOWN = ("nDCG@10", "R@5", "R@10", "any@5", "MRR")
DATA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
COLLECTIONS, EMBEDDERS = DATA["collections"], DATA["embedders"]
OURS = {name: ROOT / "qrels" / name for name in ("workshop", "starter")}
CORRECTED = DATA["corrected"]
"""The same lists under LoCoMo's corrected key: errors.json of the audit, in STEELYARD_DATA/locomo-audit."""
CONTENDERS = {**DATA["contenders"], "start without labels": DEFAULT}
TRIED = [
    *(f"weighted_sum({1 - a:.2g}*bm25, {a:.2g}*vector, normalize={scale})" for scale in ("minmax", "tmm") for a in np.arange(0, 1.01, 0.1).round(2)),
    *(f"rrf({a}*bm25, vector, k={k})" for k in (10, 60) for a in (0.5, 1, 2, 4)),
    *(f"gated(vector, {a}*bm25, least={least})" for a in (1, 2) for least in (0, 0.1)),
]  # fmt: skip
"""What is tuned over: the weights of BM25 and vectors in sums on two scales, in RRF, and in mem0's formula."""


def configured(text, limit, model=""):
    name = plain_name(text)[0]
    if name in SYSTEMS or f"{name}:documented" in SYSTEMS:
        return find_system(text).config(limit, model, {})
    return find_system("plain").config(limit, model, {}).with_strategy(parse_strategy(text))


def data(name):
    return Path(os.environ.get("STEELYARD_DATA", "../shared/data")) / name


def opened(name):
    """The data set of a collection; None where its folder, or the audit of its key, is not there."""
    folder, audit = OURS.get(name, data(CORRECTED.get(name, name))), data("locomo-audit") / "errors.json"
    if not folder.is_dir() or (name in CORRECTED and not audit.is_file()):
        return None
    return corrected(load(folder), audit) if name in CORRECTED else load(folder)


def corrected(dataset, audit):
    """LoCoMo with the evidence that the audit names; its ids count conversations and questions as the release does."""
    conversations = list(dict.fromkeys(query.id.partition(":")[0] for query in dataset.queries))
    questions = {query.id: query.text.strip() for query in dataset.queries}
    turns = any(":D" in entry.id for entry in dataset.entries)
    qrels = dict(dataset.qrels)
    for row in STRICT_JSON.decode(audit.read_text(encoding="utf-8")):
        conversation, question = map(int, re.fullmatch(r"locomo_(\d+)_qa(\d+)", row["question_id"]).groups())
        id_ = f"{conversations[conversation]}:q{question:03d}"
        if questions.get(id_) != row["question"].strip():
            raise DataError(f"{audit}: {row['question_id']} does not ask what {id_} of {dataset.name} asks")
        places = re.findall(r"D(\d+):(\d+)", " ".join(row.get("correct_evidence") or ()))
        names = Counter(f"D{session}:{turn}" if turns else f"session_{session}" for session, turn in places)
        if names:
            own = conversations[conversation]
            qrels[id_] = {f"{own}:{name}": min(count, 3) for name, count in names.items()}
    return replace(dataset, qrels=qrels)


def judged(dataset):
    """The queries that are measured: those with judgments that something answers, and that no log asked."""
    return [q for q in dataset.queries if dataset.qrels.get(q.id) and q.answerable and q.split != LOGGED]


def group_of(query):
    """What varies together: the conversation, where queries have a scope, else the query's own group."""
    return query.group or (str(query.filters) if query.filters else None)


def record_all(name, dataset, kind):
    """Write the list of every contender that has none, and what it cost."""
    folder = LISTS / name / kind
    facts_file = folder / "facts.json"
    base = LISTS / CORRECTED.get(name, name) / kind
    if base != folder and not folder.exists() and base.exists():  # a key changes no list but that of what is tuned
        shutil.copytree(base, folder)
        facts = _known(facts_file)
        facts.pop(TUNED, None)
        write_text(facts_file, canonical(facts))
    folder.mkdir(parents=True, exist_ok=True)
    facts = _known(facts_file)
    queries = judged(dataset)
    wanted = [label for label in (*CONTENDERS, TUNED) if label not in facts]
    if not wanted:
        return facts
    workspace = Workspace.open(dataset, kind)
    dimension = getattr(workspace.embedder, "dimensions", None) or next(iter(dataset.vectors.values())).shape[1]
    configs = {label: configured(CONTENDERS[label], LIMIT, workspace.model) for label in wanted if label != TUNED}
    for label in without_layers(dataset, configs):  # a recording would say so after all its searches
        facts[label] = {"refused": "the collection has no layers l0 and l1"}
        del configs[label]
    labels = list(configs)
    for group in share(configs.values()):
        own = {labels[at]: configs[labels[at]] for at in group}
        try:
            facts |= _recorded(workspace, queries, folder, own)
        except SteelyardError as error:
            facts |= {label: {"refused": str(error)} for label in own}
        print(name, kind, *own, flush=True)
        _keep(facts_file, facts, dimension * len(dataset.entries))
    if TUNED in wanted:
        facts[TUNED] = _tuned(workspace, dataset, queries, folder)
        _keep(facts_file, facts, dimension * len(dataset.entries))
    return facts


def without_layers(dataset, configs):
    """The contenders that need layers, of a collection that has none."""
    layers = any(entry.l0 for entry in dataset.entries)
    return [] if layers else [label for label, config in configs.items() if "l0" in config.effective.signals]


def _known(file):
    return json.loads(file.read_text()) if file.exists() else {}


def _keep(file, facts, numbers):
    for own in facts.values():
        if "layers" in own:
            own["bytes"] = own["layers"] * 4 * numbers
    write_text(file, canonical(facts))


def _recorded(workspace, queries, folder, configs):
    """Search once for configurations that share it, and write the list of each; what each costs, by label."""
    table, facts = record(workspace, queries, configs.values()), {}
    for label, config in configs.items():
        found = replay(table, config)
        _write(folder, label, found.ranked)
        used = config.effective.signals & EMBEDDING
        layers = {"text" if own in ("vector", "cosine") else own for own in used}
        facts[label] = {"embedded": float(found.embedded.mean()), "layers": len(layers)}
    return facts


def _write(folder, label, ranked):
    path = folder / f"{tag(label)}.run"
    write_run(path, ranked.queries, ranked.offsets, ranked.entry, ranked.entries, tag(label))


def tag(label):
    return "".join(sign if sign.isalnum() or sign in "-._" else "-" for sign in label)


def _tuned(workspace, dataset, queries, folder):
    """The list of every query by what was best on the other folds, whole conversations left out."""
    base = configured(TRIED[0], LIMIT, workspace.model)
    configs = [base.with_strategy(parse_strategy(text)) for text in (DEFAULT, *TRIED)]
    table = record(workspace, queries, configs)
    lists = [replay(table, config).ranked for config in configs]
    values = np.array([evaluate_lists(own, dataset.qrels, MEASURES[:1])[MEASURES[0]] for own in lists])
    gains = values[1:] - values[0]
    groups = [group_of(query) or query.id for query in queries]
    _, code = np.unique(groups, return_inverse=True)
    scored, left = Scored.of(gains, gains, units=code), np.ones(len(queries), dtype=bool)
    shown = [own.lists() for own in lists]
    chosen, names = [[] for _ in queries], Counter()
    for part in folds(scored.units, 0):
        if not left.any():
            break  # the first deal has every query once
        left &= ~part
        means = scored.composite_means(~part)
        at = int(np.argmax(means)) + 1 if means.max() > 0 else 0
        names[(DEFAULT, *TRIED)[at]] += 1
        for query in np.flatnonzero(part):
            chosen[query] = shown[at][query]
    _write(folder, TUNED, Ranked.of([query.id for query in queries], chosen))
    return {"embedded": 1.0, "layers": 1, "chosen": dict(sorted(names.items()))}


def time_all(datasets, kinds):
    """Measure the tables that the file which the pages read has no times of; each is kept as soon as it is there."""
    known = _known(TIMING)
    for name, dataset in datasets.items():
        missing = [kind for kind in kinds if kind not in known.get(name, {})]
        for kind in missing if name not in CORRECTED else ():
            known.setdefault(name, {})[kind] = _timed(dataset, kind)
            write_text(TIMING, canonical(known))
            print(name, kind, known[name][kind], flush=True)


def _timed(dataset, kind):
    """By contender the milliseconds of processor time of a live search: the median of a hundred queries."""
    workspace, found = Workspace.open(dataset, kind), {}
    configs = {label: configured(text, LIMIT, workspace.model) for label, text in CONTENDERS.items()}
    for label in configs.keys() - without_layers(dataset, configs):
        config = configs[label]
        workspace.index_for([find_system(config.name)], config.effective.signals)
        searcher = workspace.searcher(config)
        asked = dataset.with_known_intents(judged(dataset)[:TIMED], searcher.knows)
        rounds = [[_milliseconds(searcher, query) for query in asked] for _ in range(2)]
        found[label] = round(float(np.median(rounds[1])), 2)  # the first round fills what is kept between searches
    return found


def _milliseconds(searcher, query):
    begin = time.process_time_ns()
    searcher.search(query)
    return (time.process_time_ns() - begin) / 1e6


MANIFEST = Schema(DATA["manifest"])
"""What somebody else's manifest.json has to be: in a table of Markdown and on a page nothing of it may be a mark."""


def contributed(folder, datasets):
    """Read a contributed folder: (name, embedder, collection) -> (lists, facts). DataError names every fault at once."""
    try:
        manifest = STRICT_JSON.decode(read_text(inside(folder, "manifest.json")))
        faults = MANIFEST.violations(manifest)
    except (OSError, ValueError, RecursionError) as error:
        faults = [str(error)]
    if faults:
        raise DataError(
            f"{folder}: manifest.json must be an object with a name and a list of runs ({'; '.join(faults)}); "
            "see docs/evidence/leaderboard.md"
        )
    found = {}
    for run in manifest["runs"]:
        try:
            if run["collection"] in datasets:
                lists = _checked(folder, run, datasets[run["collection"]])
                found[manifest["name"], run["embedder"], run["collection"]] = (lists, run)
        except SteelyardError as error:
            faults.append(str(error))
    if faults:
        raise DataError(f"{folder}: " + "; ".join(faults))
    return found


def _checked(folder, run, dataset):
    """The lists of a run file, at most ten places each; DataError for what cannot be the lists of this collection."""
    try:
        path = inside(folder, run["file"])
        digest = hashlib.sha256(read_bytes(path)).hexdigest()
    except (OSError, ValueError) as error:
        raise DataError(f"{run['file']}: {getattr(error, 'strerror', None) or error}") from None
    if digest != run["sha256"]:
        raise DataError(f"{path.name} has sha256 {digest}, the manifest {quote(run['sha256'])}")
    lists, queries = read_run(path), {query.id: query for query in dataset.queries}
    entries = {entry.id: entry for entry in dataset.entries}
    strange = sorted(set(lists) - queries.keys())
    unknown = sorted({id_ for own in lists.values() for id_, _ in own} - entries.keys())
    outside = [
        f"{id_} for {query}"
        for query, own in sorted(lists.items())
        if query in queries and queries[query].filters
        for id_, _ in own[:LIMIT]
        if id_ in entries and queries[query].filters.failed(entries[id_])
    ]
    missing = [query.id for query in judged(dataset) if query.id not in lists]
    faults = [
        f"{len(names)} {what} ({', '.join(names[:3])})"
        for what, names in (
            ("unknown queries", strange),
            ("unknown entries", unknown),
            ("entries outside their query's scope", outside),
            ("judged queries without a list", missing),
        )
        if names
    ]
    if faults:
        raise DataError(f"{path.name}: {'; '.join(faults)}")
    return {query: [id_ for id_, _ in own[:LIMIT]] for query, own in lists.items()}


GIVEN_COSTS = {"embedded": "embedding_calls", "bytes": "bytes", "ms": "latency_ms"}


def measured(dataset, queries, lists):
    ranked = Ranked.of([query.id for query in queries], [lists.get(query.id, []) for query in queries])
    return {str(measure): values for measure, values in evaluate_lists(ranked, dataset.qrels, MEASURES).items()}


def rows_of(name, dataset, kind, facts, others):
    """The rows of one table, best first: label, values, intervals, the test, and costs."""
    queries = judged(dataset)
    groups = [group_of(query) for query in queries]
    lists, cost = {}, {}
    for label, own in facts.items():
        if "refused" not in own:
            read = read_run(LISTS / name / kind / f"{tag(label)}.run")
            lists[label], cost[label] = {query: [id_ for id_, _ in one] for query, one in read.items()}, own
    for (label, *of), (own, run) in others.items():
        if of == [kind, CORRECTED.get(name, name)]:
            lists[f"{label} *"] = own
            cost[f"{label} *"] = {ours: run.get(theirs) for ours, theirs in GIVEN_COSTS.items()}
    values = {label: measured(dataset, queries, own) for label, own in lists.items()}
    primary = {label: own["nDCG@10"] for label, own in values.items()}
    tests = paired({label: own for label, own in primary.items() if label != BASELINE}, primary[BASELINE], groups)
    rows = [
        (label, values[label], mean_interval(primary[label], groups), tests.get(label), cost[label])
        for label in sorted(values, key=lambda label: (-primary[label].mean(), label))
    ]
    return rows, _checks(LISTS / name / kind / "checks.json", dataset, queries, lists, values)


def _checks(file, dataset, queries, lists, values):
    """What `verified` finds, kept beside the lists until a list or a judgment changes."""
    key = hashlib.sha256(canonical([dataset.sha256, lists, list(map(str, MEASURES))]).encode()).hexdigest()
    kept = _known(file)
    if kept.get("of") != key:
        gaps = verified(dataset, queries, lists, values)
        kept = {"of": key, "gaps": {tool: float(gap) for tool, gap in gaps.items()}}
        write_text(file, canonical(kept))
    return kept["gaps"]


def verified(dataset, queries, lists, values):
    """The largest difference of any value of any run from pytrec_eval."""
    qrels, worst = {query.id: dataset.qrels[query.id] for query in queries}, 0.0
    for label, own in lists.items():
        run = {query: {id_: -float(place) for place, id_ in enumerate(own.get(query, ()))} for query in qrels}
        for measure, found in oracle(run, qrels, MEASURES).items():
            expected = np.array([found[query] for query in qrels])
            worst = max(worst, float(np.abs(expected - values[label][str(measure)]).max()))
    return {"pytrec_eval": worst}


HEAD = ("contender", *SHOWN, "nDCG@10 [95%]", "against bm25 [95%]", "p (Holm)", "verdict", "embedded", "MB", "ms")
COSTS = (("embedded", 1, ".2f"), ("bytes", 1e6, ".2f"), ("ms", 1, ".1f"))


def cells(row):
    label, values, interval, test, cost = row
    means = [f"{values[str(measure)].mean():.4f}" for measure in MEASURES]
    against = ("baseline", "", "")
    if test is not None:
        gain = f"{test.gain.mean:+.4f} [{test.gain.low:+.4f}, {test.gain.high:+.4f}]"
        against = gain, f"{test.p_holm:.4f}", test.verdict
    costs = [(cost.get(key), scale, form) for key, scale, form in COSTS]
    told = ["" if number is None else f"{number / scale:{form}}" for number, scale, form in costs]
    return [label, *means, f"[{interval.low:.4f}, {interval.high:.4f}]", *against, *told]


def sections(datasets, kinds, again):
    """For every collection and embedder: title, facts, rows of cells, refusals, and what the checks found."""
    found, others = [], {}
    for folder in sorted(path.parent for path in GIVEN.glob("*/manifest.json")):
        own = contributed(folder, datasets)
        if twice := own.keys() & others.keys():
            names = ", ".join(map(str, sorted(twice)))
            raise DataError(f"{folder}: there is a run of {names} already; take another name")
        others |= own
    for name, dataset in datasets.items():
        queries = judged(dataset)
        groups = len({group_of(query) or query.id for query in queries})
        for kind in kinds:
            if again:
                (LISTS / name / kind / "facts.json").unlink(missing_ok=True)
            try:
                facts = record_all(name, dataset, kind)
            except (EmbedderError, SteelyardError) as error:
                found.append((name, kind, f"not run: {error}", [], {}, {}, {}))
                continue
            rows, checks = rows_of(name, dataset, kind, facts, others)
            about = f"{len(dataset.entries)} entries, {len(queries)} queries in {groups} groups. Licence: {dataset.licence}."
            refused = {label: own["refused"] for label, own in facts.items() if "refused" in own}
            chosen = facts[TUNED].get("chosen", {})
            found.append((name, kind, about, [cells(row) for row in rows], refused, checks, chosen))
            print(name, kind, len(rows), "contenders", checks, flush=True)
    return found


TEXT, _, ADD = Path(__file__).with_suffix(".md").read_text("utf-8").rstrip("\n").partition("\n\n## Add a run")
ADD = f"## Add a run{ADD}"
ORDER = "By the mean over the tables, in which a contender that could not run counts 0; no mean of collections is a figure of its own."


PAGE = "[The page of all tables](tables.html) has every metric, interval, test and cost by collection, and how they are defined."


def markdown(found):
    """The first page: what was compared, and nDCG@10 of all but where the key was corrected."""
    intro, _, contenders, _, embedders, _ = _text(found).split("\n\n")
    own = [table for table in found if table[0] not in CORRECTED]
    lines = ["# Leaderboard of memory retrieval", intro, PAGE, contenders, embedders, "## nDCG@10 of all"]
    lines += [ORDER, "\n".join(_summary(own))]
    there = {(name, kind) for name, kind, *_ in found}
    missing = [f"{name}, {kind}" for name in COLLECTIONS for kind in EMBEDDERS if (name, kind) not in there]
    if missing:
        lines.append(f"Not recorded for this page, and added by `make leaderboard`: {'; '.join(missing)}.")
    return "\n\n".join([*lines, f"{ADD}\n"])


def remarks(refused, chosen):
    """What was chosen in the folds of a table, and what could not run."""
    best = ", ".join(f"{text} ({count} of {sum(chosen.values())} folds)" for text, count in chosen.items())
    return " ".join(
        [f"Tuned: {best}."] * bool(chosen) + [f"{label}: not run, {why}." for label, why in refused.items()]
    )


def _text(found):
    gap = max((value for *_, checks, _ in found for value in checks.values()), default=0.0)
    told = f"below {1e-6:.0e}" if gap < 1e-6 else f"{gap:.1e}"
    return TEXT.format(start=DEFAULT, tuned=TUNED, tried=len(TRIED) + 1, gap=told)


def _summary(found):
    tables, labels = leaderboard_page.by_mean(found)
    titles = " | ".join(f"{name}, {kind}" for name, kind in tables)
    lines = [f"| contender | {titles} |", "|---" * (len(tables) + 1) + "|"]
    return lines + [
        f"| {label} | {' | '.join(own.get(label, '') for own in tables.values())} |" for label in labels
    ]


def with_times(found):
    """The tables with the times of timing.json, which no table keeps: a time is another one on each run."""
    known = _known(TIMING)

    def timed(row, times):
        return [*row[:-1], f"{times[row[0]]:.1f}"] if row[0] in times else row

    for name, kind, about, rows, *more in found:
        times = known.get(CORRECTED.get(name, name), {}).get(kind, {})
        yield name, kind, about, [timed(row, times) for row in rows], *more


def merged(found):
    """The tables of the pages, with those made now in place of their former ones."""
    tables = {(table[0], table[1]): list(table) for table in (*_known(TABLES), *found)}
    order = [(name, kind) for name in COLLECTIONS for kind in EMBEDDERS]
    return [tables[key] for key in order if key in tables]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", type=Path, metavar="FOLDER", help="check a contributed run and write nothing")
    parser.add_argument("--record", action="store_true", help="search again")
    parser.add_argument("--time", action="store_true", help="measure missing times, and make no table anew")
    parser.add_argument("--collections", default=",".join(COLLECTIONS))
    parser.add_argument("--embedders", default=",".join(EMBEDDERS))
    parser.add_argument("--out", type=Path, default=DOCS)
    asked = parser.parse_args()
    known = {name: opened(name) for name in asked.collections.split(",") if name in COLLECTIONS}
    datasets = {name: dataset for name, dataset in known.items() if dataset is not None}
    try:
        if asked.check:
            for name, embedder, collection in contributed(asked.check, datasets):
                print(f"{name}: {collection}, {embedder}: it can join")
            return
        kinds, found = asked.embedders.split(","), []
        if asked.time:
            time_all(datasets, kinds)
        else:
            found = sections(datasets, kinds, asked.record)
    except SteelyardError as error:
        sys.exit(f"error: {error}")
    found = merged(found)
    (asked.out / "leaderboard").mkdir(exist_ok=True)
    write_text(asked.out / "leaderboard" / TABLES.name, canonical(found))
    found = [*with_times(found)]
    write_text(asked.out / "leaderboard.md", markdown(found))
    titles = [f"{COLLECTIONS[name]}, {kind}" for name, kind, *_ in found]
    told = [(*table[:2], f"{table[2]} {remarks(table[4], table[6])}".rstrip(), *table[3:]) for table in found]
    write_text(asked.out / "tables.html", leaderboard_page.html(_text(found), ORDER, titles, told))
    print(f"{asked.out / 'leaderboard.md'}, {time.process_time():.0f} s of processor time")


if __name__ == "__main__":
    main()
