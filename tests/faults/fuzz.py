"""Hostile bytes against everything that reads input: nothing but a SteelyardError may come out.

A target is a function of bytes. It returns a word for what happened and raises Fault for a broken
promise: another exception than SteelyardError, a warning, a message that would move a terminal, a
value that does not print and parse back, a score that is not finite.

    python tests/faults/fuzz.py [--minutes 5] [--goal 100000] [--fresh] [--only NUMBER] [--targets log,endpoint]

A piece of work is COUNT inputs of one target: its seeds first, then mutants of them. Chosen targets have a state
of their own.
"""

from __future__ import annotations

import atexit
import functools
import gzip
import json
import math
import os
import random
import re
import shutil
import sys
import tempfile
import traceback
import unittest.mock
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path

import apsw
import campaign
import numpy as np
import small

import steelyard_eval as sy
from steelyard import Filters, LsaEmbedder, Query, SearchConfig, Searcher, SteelyardError, Vault
from steelyard.base.files import STRICT_JSON, canonical
from steelyard.extensions.models import ApiEmbedder, ApiSettings, Secret
from steelyard.extensions.network.chat import ChatEndpoint
from steelyard.extensions.network.endpoint import Endpoint, Response
from steelyard.extensions.rerank.api import ApiReranker
from steelyard.finish import Cut, Document, finish, parse_stages
from steelyard.fusion import compile_plan, fuse, parse_strategy
from steelyard.memory.entry import Entry, read_entry
from steelyard.memory.text import content, render, template_fields
from steelyard.retrievers import EMBEDDING, FETCHED, LAYERS
from steelyard.systems import SYSTEMS, find_system
from steelyard_eval.datasets import check as check_folder, load as load_folder
from steelyard_eval.datasets.groups import judged
from steelyard_eval.extensions.importers import load_store
from steelyard_eval.extensions.usage import KINDS, gather
from steelyard_eval.extensions.usage.session import Corpus
from steelyard_eval.extensions.usage.transcripts import read_ubi
from steelyard_eval.learn.log_reader import DatasetIndex, read_log
from steelyard_eval.measures.metrics import Judgments, parse_measures
from steelyard_eval.recording import disk as recordings
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.document import load as load_result
from steelyard_eval.vaults import index_dataset, reindex_vault
from steelyard_eval.vaults.arguments import parse_filters
from steelyard_eval.vaults.read import RankedBy, open_searcher, read_entries
from steelyard_eval.views.report import write

COUNT = 60  # inputs in one piece of work
PART = b"\n--PART--\n"  # between the files of one input of a folder target
STRICT = "/* was strict */"
BESIDE_VAULTS = ("", "-wal", "-shm", "-journal")


class Fault(Exception):  # noqa: N818 -- what the fuzzer looks for, named as in the reports
    """A promise was broken."""


@dataclass(frozen=True)
class Target:
    """`run` takes bytes; `seeds` are where mutation starts; `mutate` changes one input into another."""

    run: Callable[[bytes], str]
    seeds: Callable[[], list[bytes]]
    mutate: Callable[[random.Random, bytes], bytes]


def check(name, data):
    """What a target made of these bytes, in a few words; Fault when it broke a promise."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return TARGETS[name].run(data)
        except SteelyardError as error:
            if name not in ("vault", "store") and "is damaged" in str(error):
                raise Fault(f"a sound vault is called damaged: {error}") from error
            return refusal(error)
        except Fault:
            raise
        except Exception as error:
            raise Fault(f"{type(error).__name__}: {str(error)[:300]!a}") from error


def refusal(error):
    """The kind of an error raised on purpose; Fault when its message cannot be shown to a user."""
    message = str(error)
    bad = [char for char in message if char != "\n" and not char.isprintable()]
    if bad:
        raise Fault(f"message holds {bad[0]!a}: {message[:200]!a}")
    if "Traceback" in message or not message.strip():
        raise Fault(f"message is {message[:200]!a}")
    # Without the values in it, so that equal refusals count as one outcome.
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|\S*/\S*|[-+]?\d[\d.e+-]*", "_", message.splitlines()[-1][:300])
    return f"{type(error).__name__}: {plain[:60]}"


def _text(data):
    """Any string there is, lone surrogates included."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _same(name, first, second):
    if first != second:
        raise Fault(f"{name} does not read back: {str(first)[:200]!a} gives {str(second)[:200]!a}")


def strategy(data):
    expr = parse_strategy(_text(data))
    _same("strategy", parse_strategy(str(expr)), expr)
    table = world().table
    for left in (expr, expr.without(EMBEDDING)):
        if left is not None:
            left.needs(table, sorted(FETCHED))
            scores = fuse(table, left)
            if np.isinf(scores).any():
                raise Fault(f"{str(left)[:200]} scores infinity")
            ranked = np.flatnonzero(~np.isnan(scores))
            if len(ranked):
                tree = compile_plan(table, left).explain(int(ranked[0]))
                if tree is None or tree.value != scores[ranked[0]]:
                    raise Fault(f"{str(left)[:200]} is not explained")
    return "accepted"


def stages(data):
    found = parse_stages(_text(data).split("\n"))
    _same("finish", parse_stages([str(stage) for stage in found]), found)
    table = world().table
    finish(table, table.columns["bm25"], found)
    return f"{min(len(found), 3)} stages"


def recipe(data):
    names = template_fields(_text(data))
    render(_text(data), world().entries[0])
    return f"{min(len(names), 3)} fields"


def query(data):
    text = _text(data)
    found = 0
    for searcher in world().searchers:
        found += _search(searcher, Query(text))
    return "found" if found else "found nothing"


def _search(searcher, asked):
    """How many hits; Fault when they are unordered, not finite, or more than the stages let through."""
    result = searcher.search(asked)
    scores = [hit.score for hit in result.hits]
    if not all(score is not None and math.isfinite(score) for score in scores):
        raise Fault(f"scores {scores}")
    most = min((stage.limit for stage in searcher.config.finish if isinstance(stage, Cut)), default=len(scores))
    if len(scores) > most or scores != sorted(scores, key=lambda s: -(s or 0)):
        raise Fault(f"at most {most}, scores {scores}")
    if result.hits:
        json.dumps([result.explain(result.hits[0].entry.id).to_json()], allow_nan=False)
        json.dumps([searcher.system.showing.present(hit) for hit in result.hits])
    return len(scores)


def filters(data):
    """A JSON object, or a FIELD=VALUE a line, is a condition that SQL and Python read alike."""
    text = _text(data)
    try:
        scope = json.loads(text)
    except (ValueError, RecursionError):
        scope = None
    found = Filters.of(scope) if isinstance(scope, dict) else parse_filters(text.split("\n"))
    vault = world().vault
    inside = {entry.id for entry in vault.entries(found)}
    alike = {e.id for e in world().entries if not found.failed(e)}
    if inside != alike or vault.count(found) != len(inside):
        raise Fault(f"{found} admits {inside} in SQL and {alike} in Python")
    for searcher in world().searchers:
        hits = searcher.search(Query("token", filters=found)).hits
        if not {hit.entry.id for hit in hits} <= inside:
            raise Fault(f"{found} lets through {[hit.entry.id for hit in hits]}")
    vault.recent(found, 3)
    return f"{len(inside)} of {len(world().entries)}"


def weights(data):
    path = world().folder / "search-weights.json"
    path.write_bytes(data)
    config = SearchConfig.load(path)
    again = world().folder / "again.json"
    config.save(again)
    _same("weights file", SearchConfig.load(again).to_json(), config.to_json())
    _same("effective strategy", parse_strategy(str(config.effective)), config.effective)
    outcome = ["accepted"]
    for embedder in (None, world().embedder):
        searcher = Searcher(world().vault, config, embedder, clock=lambda: 1.8e9)
        intent = "fix" if searcher.knows("fix") else ""
        outcome += tried((_search,), searcher, Query("rotate the token", intent=intent, tags=("auth",)))
    return " ".join(outcome)


def dataset(data):
    """A data-set folder has faults that can be read, or can be indexed and searched."""
    with world().dataset.changed(data) as folder:
        report = check_folder(folder)
        for line in [*map(str, report.faults), *report.notices]:
            refusal(SteelyardError(line))
        loaded = report.dataset
        if loaded is None:
            loaded = load_folder(folder)
            if {fault.file for fault in report.faults} != {"feedback.jsonl"}:  # which only learning reads
                raise Fault("check finds faults, load does not")
        with Vault(":memory:") as store:
            found = Workspace.open(loaded, "none", store)
            config = find_system("plain").config().with_strategy(FROM_FACTS)
            found.index_for([find_system("plain")], ["fts"])
            for asked in judged(loaded, loaded.split()):
                _search(found.searcher(config), asked)
            if loaded.query_vectors:
                embedding = Workspace.open(loaded, "recorded", store)
                embedding.index_for([find_system("plain")], ["vector"])
                for asked in loaded.queries:
                    _search(embedding.searcher(find_system("plain").config(model=embedding.model)), asked)
    return "accepted"


@cache
def compared():
    return dict(world().gated.compare(["fts", "bm25"], timed=False).record)


def results(data):
    path = world().folder / "results.json"
    path.write_bytes(data)
    out = world().folder / "report"
    for file in write(load_result(path), out):
        text = file.read_text(encoding="utf-8")
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text):
            raise Fault(f"{file.name} holds a control character")
    return "report"


def recording(data):
    with world().recording.changed(data) as folder:
        table = recordings.load(folder)
        outcome = {word for config in world().configs for word in tried((_replayed,), table, config)}
        del table
    return " ".join(sorted(outcome))


def _replayed(table, config):
    with np.errstate(invalid="ignore"):  # flipped bits make NaN that signal, and are NaN all the same
        ran = replay(table, config)
    if not np.isfinite(ran.ranking.score).all():
        raise Fault(f"{config.strategy} scores {ran.ranking.score[~np.isfinite(ran.ranking.score)][0]}")
    ran.metrics(Judgments.of({"q0": {"e1": 1}}, table.queries, table.entries), parse_measures(["nDCG@10"]))
    return "replayed"


def vault(data):
    folder = world().folder / "vault"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path = folder / "memory.vault"
    path.write_bytes(data)
    return " ".join(tried((_search_file, _read_file, _list_file, _change_file), str(path)))


def tried(uses, *given):
    outcome = []
    for use in uses:
        try:
            outcome.append(str(use(*given)))
        except SteelyardError as error:
            outcome.append(refusal(error)[:12])
    return outcome


def _search_file(path, systems=("echovault", "plain", "bm25")):
    for system in systems:
        with open_searcher([path], RankedBy(system), None) as searcher:
            _search(searcher, Query("rotate token", filters=Filters.of({"project": "p"})))
            _search(searcher, Query("rotate token"))
            searcher.context("token")
    return "searched"


def _read_file(path):
    json.dumps(read_entries(path, ["e1", "e2"]))
    return "read"


def _list_file(path):
    with Vault(path) as store:
        list(store.entries())
        for space, _ in store.spaces():
            store.vectors(space, Filters())
            store.missing(space)
    return "listed"


def _change_file(path):
    with Vault(path) as store:
        store.upsert([Entry("e1", text="another text"), Entry("new", text="token")])
    reindex_vault(path)
    return "changed"


def schema(data):
    """A vault that somebody changed by statements is refused, or answers what it can; nothing of theirs runs.

    Other columns, types, views, triggers, generated columns, virtual tables, collations, and odd values in every
    table, those of FTS5 and sqlite-vec included; without bytes it is left as it is.
    """
    rng = random.Random(data)  # noqa: S311 -- reproducible, not secret
    with tempfile.TemporaryDirectory(dir=world().folder) as made:
        path = Path(made) / "memory.vault"
        path.write_bytes(world().vault_file)
        done = _tampered(path, rng) if data else []
        search = functools.partial(_search_file, systems=[rng.choice(list(SYSTEMS))])
        try:
            outcome = tried((search, _search_file, _read_file, _list_file, _change_file), str(path))
        except BaseException as error:
            error.add_note(f"after {done}")
            raise
        extra = {p.name for p in path.parent.iterdir()} - {f"{path.name}{end}" for end in BESIDE_VAULTS}
        assert not extra, f"{extra} was written after {done}"
    return " ".join(outcome)


def _tampered(path, rng):
    """Change the vault, now and then while its strict tables take any value; what was done."""
    done = []
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        loosely = rng.random() < 0.3
        if loosely:
            with _opened(path) as db:
                db.execute(f"UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ') {STRICT}')")
        with _opened(path) as db:
            # As bytes, because an earlier statement may have made a name that is no text.
            names = "SELECT CAST(name AS BLOB) FROM sqlite_schema WHERE type = 'table' AND name IS NOT NULL"
            columns = {}
            for (raw,) in db.execute(names).fetchall():
                table = raw.decode("utf-8", "replace")
                rows = db.execute("SELECT name FROM pragma_table_info(?)", (table,))
                columns[table] = [name for (name,) in rows]
            sql = _statement(rng, columns, path.parent)
            db.execute(sql).fetchall()
            done.append(("loosely " if loosely else "") + sql)
        if loosely:
            with _opened(path) as db:
                db.execute(f"UPDATE sqlite_schema SET sql = replace(sql, ') {STRICT}', ') STRICT')")
    return done


@contextmanager
def _opened(path):
    """What SQLite refuses all the same is left out, and so is what never ends, such as a trigger of theirs."""
    with suppress(apsw.Error), small.loosened(path) as db:
        db.set_progress_handler(lambda: True, 10**7)
        yield db


def _statement(rng, columns, folder):
    known, tables = DATA["schemas"], [table for table in columns if table] or ["entries"]
    table = rng.choice((*tables, *["entries"] * (len(tables) // 3)))
    own = columns.get(table) or ["x"]
    words = {name: rng.choice(every) for name, every in known["words"].items()}
    words["body"] = words["body"].format(folder=folder)
    # What is sorted and joined by.
    words["column"] = rng.choice((rng.choice(own), "id" if "id" in own else own[0]))
    words |= {"value": rng.choice(known["values"]), "name": rng.choice((*tables, *known["names"]))}
    kinds = known["values in sound tables"]
    statement = rng.choice(kinds if rng.random() < 0.5 else [*kinds, *known["others"]])
    return statement.format(**words, table=table, other=rng.choice(tables))


def store(data):
    """A store of another program, with bytes of one file changed, is imported, or refused in one message."""
    rng = random.Random(data)  # noqa: S311 -- reproducible, not secret
    source = STORES / rng.choice(DATA["stores"])
    with tempfile.TemporaryDirectory(dir=world().folder) as folder:
        path = Path(folder) / source.name
        if source.is_dir():
            shutil.copytree(source, path, ignore=shutil.ignore_patterns("expected.json"))
        else:
            shutil.copy2(source, path)
        if data:
            changed = rng.choice(sorted(one for one in [path, *path.rglob("*")] if one.is_file()))
            changed.write_bytes(mutate_bytes(rng, changed.read_bytes()))
        try:
            load_store(path)
        except SteelyardError as error:
            if "\n" in str(error).strip() and "faults" not in str(error):
                raise Fault(f"more than one message: {error}") from None
            raise
    return "imported"


def log(data):
    """A log of ours, of OpenSearch or of Soleri, packed or not, is read, or refused in words."""
    kind, body = LOGS[data[0] % len(LOGS)] if data else LOGS[0], data[1:]
    path = world().folder / kind
    path.write_bytes(gzip.compress(body, mtime=0) if data[:1] >= b"\x80" and kind.endswith(".gz") else body)
    return " ".join(sorted(set(tried((_read_log, _read_ubi), str(path))), reverse=True))


def _read_log(path):
    numbers = {entry.id: at for at, entry in enumerate(ENTRIES)}
    known = DatasetIndex(numbers, {"q0": 0}, {"token": 0}, {"q0": "token"}, True)
    shown = read_log(path, known, 1.8e9).hits.shown
    if not np.isfinite(shown).all():
        raise Fault(f"counts {shown}")
    return "read"


def _read_ubi(path):
    for session in read_ubi([Path(path)], Corpus(ENTRIES), "", Counter()):
        list(session.events)
    return "read"


def used(data):
    """What agents did becomes lines of a log without its texts, or is refused; from 192 on it is an old log."""
    own, folder = data[0] if data else 0, world().folder / "used"
    folder.mkdir(exist_ok=True)
    kind = [*KINDS][own % 8 % len(KINDS)]
    path = folder / ("one.json" if 128 <= own < 192 else "one.jsonl")
    path.write_bytes(data[1:] if own < 192 else _use_seeds()[0][1:])
    log = folder / "log.jsonl"
    log.write_bytes(data[1:] if own >= 192 else b"")
    source, environ = f"{kind if own < 192 else 'transcripts'}:{path}", {"XDG_STATE_HOME": str(folder)}
    found = gather(load_folder(world().folder / "set"), source, log=log, environ=environ)
    json.dumps([STRICT_JSON.decode(line) for line in found.lines])
    if own < 192 and SPOKEN in "".join([*found.lines, str(found), json.dumps(found.record)]):
        raise Fault(f"a text of what was read is told: {SPOKEN}")
    found.write()
    _read_log(str(log))
    return f"{kind} {found.record['searches']}"


def baseline(data):
    """A baseline that somebody sealed again, or did not, is refused, or gates without asking anybody."""
    path = world().folder / "baseline.json"
    with suppress(ValueError, RecursionError, AttributeError):
        record = STRICT_JSON.decode(_text(data[1:]))
        if data[:1] < b"\xc0":
            data = data[:1] + small.sealed(record).encode()
    path.write_bytes(data[1:])
    found = world().gated.gate(baseline=path)
    canonical(found.to_json())
    return str(found.result.answer.facts["verdict"])


def endpoint(data):
    """What an endpoint answers becomes vectors, scores, a text or a list that are sound, or an error in words."""
    asked, body = ASKED[data[0] % len(ASKED)] if data else ASKED[0], _text(data[1:])
    status = 200 if data[:1] < b"\xe0" else 503
    with unittest.mock.patch.object(Endpoint, "ask", lambda *_, **__: Response(status, {}, body)):
        found = asked()
    if isinstance(found, np.ndarray) and not np.isfinite(found).all():
        raise Fault(f"not finite: {found}")
    return type(found).__name__


def _asked_list():
    found = sy.HttpSearch.of("http://127.0.0.1:1/?q={query}#ids=hits[*].id").ask(Query("t"), 9)
    return world().gated.compare({"endpoint": lambda *_: found}, metrics=["nDCG@10"], current="fts")


DATA = json.loads(Path(__file__).parents[1].joinpath("data", "fuzz.json").read_text(encoding="utf-8"))
"""Seeds, and hostile pieces, see `small.whole`."""
STORES = Path(os.environ.get("STEELYARD_STORES") or Path(__file__).parents[3] / "shared" / "stores")
PACKED = ("corpus.jsonl", "queries.jsonl")
LOGS = ("log.jsonl", "log.jsonl.gz", "log.json")
SPOKEN = "what-nobody-else-may-read"  # A word of everything that agents did, which no log of ours may hold
ASKED: tuple[Callable[[], object], ...] = (
    lambda: ApiEmbedder(API, attempts=1, sleep=lambda _: None).embed(["one", "two"]),
    lambda: ApiReranker(replace(API, provider="voyage"), attempts=1).score("q", [Document("a", "b")] * 2),
    lambda: ChatEndpoint("http://127.0.0.1:1", "m", attempts=1, sleep=lambda _: None).complete("p"),
    _asked_list,
)
API = ApiSettings("openai", "http://127.0.0.1:1/v1", "tiny", 8, Secret())

ENTRIES = tuple(read_entry(record)[0] for record in DATA["entries"])
FROM_FACTS = parse_strategy(
    "weighted_sum(1*fts, 0.2*recency(half_life=30d), 0.2*importance, 0.1*severity, 0.1*tags, 0.1*domain)"
)
STRATEGIES = tuple(DATA["seeds"]["strategy"])
WORDS = (*re.findall(r"[a-z_]+[0-9]?", " ".join(STRATEGIES)), *"(),*=[]", *DATA["words of strategies"])


class Folder:
    """A folder that is changed for one input and put back; an input names files by its first byte."""

    def __init__(self, path, extra):
        """`extra` are files that a sound folder lacks, each with one it takes the place of."""
        self.path = path
        self.files = {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}
        self.instead = {name: other for name, (_, other) in extra.items()}
        self.every = self.files | {name: raw for name, (raw, _) in extra.items()}
        self.names = tuple(self.every)

    def seeds(self):
        return [bytes([at]) + raw for at, raw in enumerate(self.every.values())]

    @contextmanager
    def changed(self, data):
        """A copy of the folder with the files of this input, for the length of a with block."""
        with tempfile.TemporaryDirectory(dir=self.path.parent) as made:
            folder = Path(shutil.copytree(self.path, made, dirs_exist_ok=True))
            for part in filter(None, data.split(PART)[:4]):
                name = self.names[part[0] % len(self.names)]
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_bytes(part[1:])
                if name in self.instead:
                    (folder / self.instead[name]).unlink(missing_ok=True)
            yield folder


class World:
    """A small memory, its data set, its recording and its vault file, in a temporary folder."""

    def __init__(self):
        fast = Path("/dev/shm")  # noqa: S108 -- a folder of its own is made in it
        self.folder = Path(tempfile.mkdtemp(prefix="steelyard-fuzz-", dir=fast if fast.is_dir() else None))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.entries = ENTRIES
        self.embedder = LsaEmbedder.fit([content(entry) for entry in ENTRIES])
        self.dataset = Folder(
            _dataset_folder(self.folder / "set"),
            {
                **{f"{own}.gz": (gzip.compress(_lines(DATA["data set"][own]), mtime=0), own) for own in PACKED},
                "qrels/test.tsv": (b"query-id\tcorpus-id\tscore\nq0\te1\t1\n", "dataset.json"),
            },
        )
        found = load_folder(self.folder / "set")
        space = Workspace(found, Vault(":memory:"), self.embedder)
        space.store.upsert(ENTRIES)
        space.index_for([find_system(name) for name in SYSTEMS], [*LAYERS, "vector", "cosine"])
        self.vault = space.store
        plain = find_system("plain").config(10, self.embedder.model)
        self.configs = [plain.with_strategy(parse_strategy(text)) for text in (*STRATEGIES, str(FROM_FACTS))]
        self.table = record(space, found.queries, self.configs)
        recordings.save(self.table, self.folder / "recording")
        self.recording = Folder(self.folder / "recording", {})
        self.searchers = [space.searcher(find_system(n).config()) for n in ("fts", "bm25", "echovault")]
        self.searchers.append(space.searcher(plain.with_strategy(parse_strategy("rrf(fts, vector, 1*tfidf)"))))
        self.gated = sy.load(self.folder / "set")
        self.gated.gate(["fts", "bm25"], baseline=self.folder / "baseline.json", reason="the first one")
        self.baseline = (self.folder / "baseline.json").read_bytes()
        index_dataset(found, str(self.folder / "seed.vault"))
        self.vault_file = (self.folder / "seed.vault").read_bytes()


world = functools.cache(World)


def _lines(records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _dataset_folder(path):
    path.mkdir()
    for name, held in DATA["data set"].items():
        lines = _lines(held if isinstance(held, list) else [held])
        (path / name).write_bytes(held.encode() if isinstance(held, str) else lines)
    matrix = np.eye(4, dtype=np.float16)
    for name, rows in (("corpus", matrix), ("corpus.l0", matrix), ("queries", matrix[:3])):
        np.save(path / f"{name}.tiny.f16.npy", rows)
    return path


def _json_seeds(records):
    return [json.dumps(one, indent=1).encode() for one in records]


def _weight_seeds():
    configs = [system.config(model="lsa") for system in SYSTEMS.values()]
    found = [config.to_json() for config in configs] + [
        configs[3].with_strategy(parse_strategy(text)).to_json() for text in STRATEGIES
    ]
    found[-1] |= {"by_intent": {"fix": "bm25", "ask": "rrf(fts, bm25)"}}
    found[-1] |= {"provenance": {"seed": 1, "holdout": {"value": 0.5, "low": 0.4}, "plateau": [0.1, 0.2]}}
    return _json_seeds(found)


DEPTHS = tuple(DATA["depths of nesting"])
HOSTILE_TEXT = tuple(map(small.whole, DATA["text"]))
WORDS_OF_ARRAYS = tuple(map(small.whole, DATA["words of array headers"]))
HOSTILE_JSON = tuple(map(small.whole, (*DATA["json"], *map(json.dumps, STRATEGIES), *DATA["json behind"])))


def _spoilt(rng, text, words):
    at, to = sorted(rng.randint(0, len(text)) for _ in range(2))
    number = re.compile(r"\d+")
    odd = chr(rng.choice((rng.randrange(256), rng.randrange(0x3000), 0xD800)))
    found = [match.span() for match in re.finditer(r"\w+", text)] or [(at, at)]
    begin, end = rng.choice(found)
    ways = [
        lambda: text[:at] + rng.choice(HOSTILE_TEXT) + text[at:],
        lambda: text[:at] + rng.choice(words) + text[at:],
        lambda: text[:at] + text[min(to, at + rng.choice((1, 1, 5, 50))) :],
        lambda: text[:to] + text[at:to] * rng.choice((1, 1, 2, 30)) + text[to:],
        lambda: text[:at] + odd + text[at + 1 :],
        lambda: number.sub(lambda m: rng.choice((m[0], m[0], *HOSTILE_TEXT[-20:])), text, count=3),
        lambda: text[:begin] + rng.choice(words) + text[end:],
    ]
    if rng.random() < 0.01:
        return text[:at] + (text[at : at + 20] or "a ") * rng.choice((300, 2000)) + text[at:]
    return rng.choice(ways)()


def mutate_text(rng, data, words=HOSTILE_TEXT):
    text = _text(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        text = _spoilt(rng, text, words)[:100_000]
    return text.encode("utf-8", "surrogatepass")


def mutate_strategy(rng, data):
    """A strategy inside itself, or beside others, many times; or one with words changed."""
    if rng.randrange(2):
        return mutate_text(rng, data, WORDS)
    known = DATA["strategies around one"]
    words = {name: rng.choice(known[name]) for name in ("number", "scale")}
    words |= {"text": _text(data), "other": rng.choice(STRATEGIES)}
    before, repeated, often, inside, after = rng.choice(rng.choice(known["forms"]))
    times = rng.choice(often)
    text = before.format(**words) + repeated.format(**words) * times + inside.format(**words) + after * times
    return text.encode("utf-8", "surrogatepass")


def mutate_query(rng, data):
    if rng.random() < 0.02:
        return (rng.choice(DATA["pieces of long queries"]) * rng.choice((300, 3000, 30_000))).encode()
    return mutate_text(rng, data, DATA["words of queries"])


def mutate_json(rng, data):
    """Values and keys replaced, removed, repeated; sometimes bytes."""
    try:
        value = json.loads(data)
        if rng.random() < 0.15:
            raise ValueError
    except (ValueError, RecursionError):
        return mutate_bytes(rng, data)
    raw: list[str] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        value = _change(rng, value, raw)
    try:
        text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    except RecursionError:
        return data
    for at, literal in enumerate(raw):
        text = text.replace(f'"@@{at}@@"', literal)
    if rng.random() < 0.05:
        text = text.replace("{", rng.choice(('{"id": "e1",', '{"strategy": "fts",', "\ufeff{", "{,")), 1)
    return text[:2_000_000].encode("utf-8", "surrogatepass")


def _change(rng, value, raw):
    """The value with one place in it changed; a placeholder stands for literals that Python cannot print."""
    places = list(_places(value))
    if not places:
        return _hostile(rng, raw)
    holder, key = rng.choice(places)
    kind = rng.randrange(10)
    if kind < 6:
        holder[key] = _hostile(rng, raw)
    elif kind == 6:
        del holder[key]
    elif kind == 7:
        other, its = rng.choice(places)
        with suppress(KeyError, IndexError, RecursionError):
            holder[key] = json.loads(json.dumps(other[its]))
    elif isinstance(holder, list):
        holder.insert(rng.randint(0, len(holder)), _hostile(rng, raw))
    else:
        own = rng.choice(({"fix": "bm25"}, {"default": "fts"}, _hostile(rng, raw)))
        holder[rng.choice(("extra", "by_intent", "provenance", "filter", "files", "x\x1b[0m", "fix\n", ""))] = own
    return value


def _places(value):
    """Every (container, key) in a JSON value; a loop, for it may be deep."""
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, dict | list):
            for key in holder if isinstance(holder, dict) else range(len(holder)):
                yield holder, key
                waiting.append(holder[key])


def _hostile(rng, raw):
    depth = rng.choice(DEPTHS)
    deep = rng.choice(("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth))
    raw.append(deep if rng.random() < 0.12 else rng.choice(HOSTILE_JSON))
    return f"@@{len(raw) - 1}@@"


def _odd(rng, byte):
    return rng.choice((0, 1, 0x7F, 0x80, 0xFF, byte ^ (1 << rng.randrange(8)), rng.randrange(256)))


def mutate_bytes(rng, data):
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 40))):
        at = rng.randint(0, max(0, len(raw) - 1))
        kind = rng.randrange(6)
        if kind < 2 and raw:
            raw[at] = _odd(rng, raw[at])
        elif kind == 2:
            del raw[at : at + rng.choice((1, 2, 16, 500))]
        elif kind == 3:
            raw[at:at] = raw[at : at + rng.choice((1, 4, 100))]
        elif kind == 4:
            raw[at:at] = rng.choice(HOSTILE_TEXT).encode("utf-8", "surrogatepass")
        elif rng.random() < 0.1:
            del raw[at:]
    return bytes(raw)


def mutate_npy(rng, data):
    """The words and numbers of the header, numbers of the body, or any bytes."""
    if rng.random() < 0.1:
        return rng.choice(DATA["no arrays"]).encode("latin-1") + data[rng.choice((0, 9, 128)) :]
    if data[:8] != b"\x93NUMPY\x01\x00" or rng.random() < 0.2:
        return mutate_bytes(rng, data)
    end = 10 + int.from_bytes(data[8:10], "little")
    header, body = data[10:end], data[end:]
    if rng.random() < 0.6:
        header = mutate_text(rng, header.rstrip(), WORDS_OF_ARRAYS)[:60_000] + b"\n"
    elif rng.random() < 0.5 and len(body) >= 4:
        numbers = np.frombuffer(body[: len(body) // 4 * 4], dtype="<i4").copy()
        numbers[rng.randrange(len(numbers))] = rng.choice((-1, 2**31 - 1, -(2**31), 5, 0, 0x7FF00000))
        body = numbers.tobytes()
    else:
        body = rng.choice((b"", body[:-1], body * 2, b"\xff" * len(body), b"\0" * len(body)))
    return data[:8] + len(header).to_bytes(2, "little") + header + body


def mutate_file(rng, name, data):
    if name.endswith(".gz"):
        with suppress(OSError, EOFError, ValueError, zlib.error):
            if rng.random() > 0.3:
                return gzip.compress(mutate_file(rng, name[:-3], gzip.decompress(data)), mtime=0)
        return mutate_bytes(rng, data)
    if name.endswith(".jsonl") and rng.random() < 0.85:
        return mutate_lines(rng, data)
    if name.endswith(".json"):
        return mutate_json(rng, data)
    return (mutate_npy if name.endswith(".npy") else mutate_text)(rng, data)


def mutate_lines(rng, data):
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = mutate_json(rng, lines[at])
    if rng.random() < 0.1:
        lines.insert(at, rng.choice(lines))
    return b"\n".join(lines)


def mutate_folder(rng, data, folder):
    """A change of one of the files of an input, or another file beside it."""
    parts = [part for part in data.split(PART) if part] or [folder.seeds()[0]]
    if rng.random() < 0.25 and len(parts) < 3:
        parts.append(rng.choice(folder.seeds()))
    at = rng.randrange(len(parts))
    name = folder.names[parts[at][0] % len(folder.names)]
    parts[at] = parts[at][:1] + mutate_file(rng, name, parts[at][1:])
    return PART.join(parts)


def mutate_vault(rng, data):
    """Bytes anywhere, in page headers, or in the middle of the words of the schema; pages that change places."""
    raw = bytearray(data)
    words = [m.start() for m in re.finditer(rb"embedding|float|fts5|vec0|entries|rowid|NUMPY|porter", raw)]
    pages = range(0, max(1, len(raw)), 4096)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        kind, page, other = rng.randrange(20), rng.choice(pages), rng.choice(pages)
        if kind == 0:
            raw[page : page + 4096] = raw[other : other + 4096]
        elif kind == 1 and rng.random() < 0.2:
            del raw[rng.randrange(len(raw) + 1) :]
        elif raw:
            near = rng.choice(words) + rng.randrange(12) if words and kind < 6 else page + rng.randrange(4096)
            at = min(len(raw) - 1, page + rng.randrange(120) if kind > 14 else near)
            raw[at] = _odd(rng, raw[at])
    return bytes(raw)


def mutate_kind(mutate):
    def change(rng, data):
        kind = bytes([rng.randrange(256)]) if rng.random() < 0.1 else data[:1]
        return kind + mutate(rng, data[1:])

    return change


def _log_seeds():
    return [*(bytes([at]) + _lines(log) for log in DATA["logs"] for at in (0, 131))]


def _use_seeds():
    found = [bytes([at + first]) + _lines(log) for at, log in enumerate(DATA["used"]) for first in (0, 128)]
    return [*found, b"\xc0" + _lines(DATA["earlier log"])]


def _answers():
    return [bytes([at]) + json.dumps(one).encode() for at, one in enumerate(DATA["answers"])]


def _texts(name):
    return lambda: [text.encode() for text in DATA["seeds"][name]]


TARGETS: dict[str, Target] = {
    "strategy": Target(strategy, _texts("strategy"), mutate_strategy),
    "finish": Target(stages, _texts("finish"), mutate_text),
    "recipe": Target(recipe, _texts("recipe"), mutate_text),
    "query": Target(query, _texts("query"), mutate_query),
    "filters": Target(
        filters, _texts("filters"), lambda r, d: (mutate_json if d[:1] == b"{" else mutate_text)(r, d)
    ),
    "weights": Target(weights, _weight_seeds, mutate_json),
    "dataset": Target(dataset, lambda: world().dataset.seeds(), lambda r, d: mutate_folder(r, d, world().dataset)),
    "results": Target(results, lambda: _json_seeds([compared()]), mutate_json),
    "recording": Target(
        recording, lambda: world().recording.seeds(), lambda r, d: mutate_folder(r, d, world().recording)
    ),
    "vault": Target(vault, lambda: [world().vault_file], mutate_vault),
    "schema": Target(schema, lambda: [b""], lambda rng, _: rng.randbytes(8)),
    **({"store": Target(store, lambda: [b""], lambda rng, _: rng.randbytes(8))} if STORES.is_dir() else {}),
    "log": Target(log, _log_seeds, mutate_kind(mutate_lines)),
    "used": Target(used, _use_seeds, mutate_kind(mutate_lines)),
    "baseline": Target(baseline, lambda: [b"\0" + world().baseline], mutate_kind(mutate_json)),
    "endpoint": Target(endpoint, _answers, mutate_kind(mutate_json)),
}


@dataclass
class Tally:
    """What a run of one target did. `faults` maps where it broke to (message, inputs that do so)."""

    outcomes: Counter[str]
    faults: dict[str, tuple[str, int]]


def inputs(name, seed):
    """Seeds, then mutants of a pool that the more odd ones join; the same for the same seed."""
    target, rng = TARGETS[name], random.Random(f"{name} {seed}")  # noqa: S311 -- reproducible, not secret
    pool = target.seeds()
    first = len(pool)
    yield from pool
    while True:
        data = target.mutate(rng, rng.choice(pool))
        yield data
        if rng.random() < 0.02 and len(data) < 300_000:
            pool[first:] = [*pool[first:], data][-40:]


def where(fault):
    """The line of Steelyard that a fault came through last, or what was broken."""
    if fault.__cause__ is None:
        return re.sub(r"\d+|'[^']*'", "_", str(fault))[:60]
    frames = traceback.extract_tb(fault.__cause__.__traceback__)
    own = [f for f in frames if "steelyard" in f.filename and "fuzz.py" not in f.filename] or list(frames)
    return f"{type(fault.__cause__).__name__} at {Path(own[-1].filename).name}:{own[-1].lineno} {own[-1].name}"


def run(name, seed, count):
    tally = Tally(Counter(), {})
    world()
    for data in islice(inputs(name, seed), count):
        try:
            tally.outcomes[check(name, data)] += 1
        except Fault as fault:
            message, times = tally.faults.get(where(fault), (f"{fault} of {data[:200]!a}", 0))
            tally.faults[where(fault)] = (message, times + 1)
    return tally


def work_of(names):
    def work(number):
        name = names[number % len(names)]
        tally = run(name, number, COUNT)
        if tally.faults:
            raise AssertionError(f"{name}: {tally.faults}")
        return {"executions": COUNT, name: COUNT}

    return work


if __name__ == "__main__":
    parser = campaign.options(__doc__, 100_000)
    every = list(TARGETS)
    parser.add_argument("--targets", type=lambda text: text.split(","), default=every, help=", ".join(every))
    chosen = parser.parse_args()
    if strange := set(chosen.targets) - set(every):
        parser.error(f"no targets: {', '.join(sorted(strange))}")
    world()
    title = "bytes" if chosen.targets == every else f"bytes-{'-'.join(chosen.targets)}"
    sys.exit(campaign.campaign(title, campaign.isolated(work_of(chosen.targets), seconds=300), chosen))
