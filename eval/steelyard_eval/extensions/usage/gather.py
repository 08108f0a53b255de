"""From the logs of other programs to one of ours: what was found, and what of it may be written."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, nearest, quote
from steelyard.base.files import STRICT_JSON, write_text
from steelyard.feedback import line as written
from steelyard_eval.common.formatting import counted
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.logs import HeldLog, decode, lines_of
from steelyard_eval.extensions.usage import traces, transcripts
from steelyard_eval.extensions.usage.log_writer import REJECTION_REASONS, Line, Writer, own_key
from steelyard_eval.extensions.usage.session import Corpus, UseSession, files_of
from steelyard_eval.extensions.usage.what_followed import search_outcomes

MOST_SEARCHES = 1_000_000
LINES = (".jsonl", ".jsonl.gz")
SPANS = (*LINES, ".json", ".json.gz")
PHOENIX = partial(traces.read, step_of=traces.openinference)


@dataclass(frozen=True)
class UseKind:
    """A kind of log: what the command line calls it, what it is, how it is read.

    `read` gives the sessions in some files; it gets the data set's corpus, its system, and a counter of faults.
    `suffixes` are how its files end, `homes` where the program keeps them, from the environment.
    """

    name: str
    about: str
    read: Callable[[list[Path], Corpus, str, Counter[str]], Iterator[UseSession]]
    suffixes: tuple[str, ...]
    homes: Callable[[Mapping[str, str]], Iterable[Path]] = lambda environ: ()


KINDS = {
    kind.name: kind
    for kind in (
        UseKind("transcripts", "sessions of Claude Code", transcripts.read, LINES, transcripts.homes),
        UseKind("otel", "OpenTelemetry GenAI spans", traces.read, SPANS),
        UseKind("openinference", "OpenInference spans, of Phoenix", PHOENIX, SPANS),
        UseKind("ubi", "ubi_queries and ubi_events of OpenSearch", transcripts.read_ubi, (*LINES, ".ndjson")),
    )
}


@dataclass(frozen=True)
class UsageLog:
    """What was read of the logs of other programs: a `record` of what was found, as plain JSON values.

    `lines` are the log: that of earlier runs with what is new; `held` has the same with the texts of queries, as
    far as they are known: never written. `path` is where the log belongs; `changed` whether it differs from the
    file.
    """

    record: dict[str, Any]
    lines: tuple[str, ...]
    held: HeldLog
    path: Path
    changed: bool

    def to_json(self) -> dict[str, Any]:
        """What was found, and what is written of it."""
        return {**self.record, "file": str(self.path), "lines": [json.loads(line) for line in self.lines]}

    def write(self) -> None:
        """Write the log, where something has changed; for its owner's eyes, as it may hold texts of queries."""
        if self.changed:
            write_text(self.path, "".join(self.lines), private=True)

    def __str__(self) -> str:
        """What was found, in a few lines."""
        record = self.record
        each = (record[key].items() for key in ("acts", "rejected"))
        counts = [", ".join(f"{count} {name}" for name, count in items) for items in each]
        searches, queries, sessions = (f"{record[key]:,}" for key in ("searches", "queries", "clients"))
        silent, files = record["without_text"], counted(record["files"], "file")
        rows = [
            ("read", f"{files} of {record['kind']}, {record['calls']:,} calls of searches"),
            ("log", f"{searches} searches with their lists, {queries} distinct queries, {sessions} sessions"),
            ("acts", counts[0] or "none"),
            ("rejected", counts[1]),
            ("silent", silent and f"{silent} searches whose text is neither kept nor of the data set"),
            *(("note", f"{count} {name}") for name, count in record["notes"].items()),
        ]
        return "\n".join(f"{name + ':':10}{text}" for name, text in rows if text)


def gather(
    dataset: Dataset,
    source: str,
    *,
    log: str | Path | None = None,
    keep_queries: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> UsageLog:
    """Read logs of other programs as impressions and acts on the entries of a data set.

    `source` is ``KIND`` or ``KIND:PATH``, a kind of `KINDS` with a file or a folder; without one the places where
    the program keeps its logs. `log` is ours, `feedback.KIND.jsonl` in the folder of the data set by default:
    what it holds of earlier runs stays, as programs remove their logs after some weeks. With `keep_queries` the
    texts of queries are written, but for those that may hold a secret.

    Raises ConfigError for an unknown kind, or where there is nothing to read, DataError for a file that cannot be
    read.
    """
    kind, files = _found(source, environ)
    corpus = Corpus(dataset.entries)
    writer = Writer(dataset, corpus, kind.name, own_key(environ), keep_queries)
    notes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    system = dataset.system.partition(":")[0]
    fresh: dict[str, Line] = {}
    for session in kind.read(files, corpus, system, notes):
        for call in search_outcomes(session.events, corpus):
            counts["calls"] += 1
            counts["repeated"] += call.repeated
            made = writer.impression(call, session.client, session.simulated)
            if isinstance(made, str):
                counts[made] += 1
                continue
            mark = made["search"]
            fresh[mark] = _joined(fresh[mark], made) if mark in fresh else made
            if len(fresh) > MOST_SEARCHES:
                raise DataError(f"more than {MOST_SEARCHES:,} searches; read a folder inside this one")
    path = Path(log) if log is not None else dataset.path / f"feedback.{kind.name}.jsonl"
    before = _earlier(path)
    lines = _merged(before, writer.policies.values(), fresh.values())
    texts = ((line, writer.texts.get(line.get("query_key", ""))) for line in lines)
    known = ({**line, "user_query": text} if text else line for line, text in texts)
    held = HeldLog(str(path), tuple(written(line).encode(errors="replace") for line in known))
    packed = tuple(map(written, lines))
    searches = [line for line in lines if "configuration" not in line]
    record: dict[str, object] = {
        "kind": kind.name,
        "files": len(files),
        "calls": counts["calls"],
        "rejected": {name: counts[name] for name in REJECTION_REASONS if counts[name]},
        "searches": len(searches),
        "clients": len({line.get("client_id") for line in searches}),
        "queries": len({line.get("query_key") or line["search"] for line in searches}),
        "without_text": len(searches) - sum(b'"user_query":"' in line for line in held.lines),
        "repeated": counts["repeated"],
        "acts": dict(
            sorted(Counter(act["action_name"] for line in searches for act in line.get("actions") or ()).items())
        ),
        "notes": dict(sorted(notes.items())),
    }
    return UsageLog(record, packed, held, path, [written(line) for line in before] != list(packed))


def _found(source: str, environ: Mapping[str, str]) -> tuple[UseKind, list[Path]]:
    name, given, place = source.partition(":")
    if name not in KINDS:
        raise ConfigError(
            f"there is no kind of log {quote(name)}{nearest(name, KINDS)}; kinds: {', '.join(KINDS)}"
        )
    kind = KINDS[name]
    places = [Path(place).expanduser()] if given else list(kind.homes(environ))
    if given and not places[0].exists():
        raise ConfigError(f"{quote(place, PATH_WIDTH)} does not exist; name a file or a folder after {name}:")
    files = [file for path in places for file in files_of(path, kind.suffixes)]
    if not files:
        looked = f" (looked at {', '.join(map(str, places))}, for {', '.join(kind.suffixes)})" if places else ""
        raise ConfigError(f"no {kind.about} are found{looked}; name a file or a folder: {name}:PATH")
    return kind, files


def _joined(old: Line, new: Line) -> Line:
    """A search that stands in two files, because a session was resumed: with what followed in either."""
    acts = {act.get("object_id", ""): act for act in (*old["actions"], *new["actions"])}
    if len(acts) > 1:
        acts.pop("", None)  # something was of use after all
    return {**old, "actions": [acts[name] for name in sorted(acts)]}


def _earlier(path: Path) -> list[Line]:
    if not path.exists():
        return []
    earlier = []
    for number, raw in lines_of(path):
        try:
            checked, line = decode(raw), STRICT_JSON.decode(raw.decode())
        except (ValueError, RecursionError):
            checked, line = None, {}
        if checked is None or not (checked.policy if "configuration" in line else checked.search):
            place = quote(str(path), PATH_WIDTH)
            raise DataError(f"{place}:{number}: is no line that --from wrote; name another log with --feedback")
        earlier.append(line)
    return earlier


def _merged(before: Iterable[Line], policies: Iterable[Line], fresh: Iterable[Line]) -> list[Line]:
    """Policies, then searches by time; a search that is read again replaces what was known of it."""
    named = {line["policy"]: line for line in (*(line for line in before if "configuration" in line), *policies)}
    old = {line["search"]: line for line in before if "configuration" not in line}
    for line in fresh:
        kept = old.get(line["search"], {})
        text = {"user_query": kept["user_query"]} if "user_query" in kept and "user_query" not in line else {}
        old[line["search"]] = {**line, **text}
    searches = sorted(old.values(), key=lambda line: (str(line.get("timestamp")), line["search"]))
    return [*(named[name] for name in sorted(named)), *searches]
