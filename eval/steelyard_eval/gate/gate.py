"""Gates contenders against a committed baseline, and writes baselines: where everything in this room starts."""

import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace as with_fields
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, collect_errors, nearest, quote, visible
from steelyard.base.files import backup_path, read_bytes, write_texts
from steelyard_eval.common.process import day
from steelyard_eval.compare.contenders import GivenMany
from steelyard_eval.datasets.manifest import Naming
from steelyard_eval.gate import setup
from steelyard_eval.gate.baseline import Baseline, BaselineContender, BaselineList, Hashes
from steelyard_eval.gate.comparison import BaselineComparison
from steelyard_eval.gate.lists import ContenderLists, ContenderRef, read_again, read_contenders, run
from steelyard_eval.gate.result import gated, mismatched
from steelyard_eval.gate.rule import SHALLOW, SMALL
from steelyard_eval.recording.next_steps import settings
from steelyard_eval.recording.provenance import TOOL
from steelyard_eval.result.sentences import say
from steelyard_eval.views.frames import Gating

DIGITS = 9  # of the scores that are kept, to compare them on another platform; their bits are in the hash


def check(gate: setup.Gate, contenders: GivenMany | None = None) -> Gating:
    """Gate these contenders, or all that the baseline names.

    Raises DataError for a missing baseline; ConfigError for a contender that is none, or not in the baseline.
    """
    gate.needed()
    if gate.differing:
        return Gating(mismatched(gate))
    gate, refs = _in_place(gate, contenders)
    gate = _aligned(gate)
    kept = [_kept(gate.needed(), ref) for ref in refs]
    rows = [BaselineComparison(gate, own, before) for own, before in zip(run(gate, refs), kept, strict=True)]
    return Gating(gated(gate, rows))


def update(
    gate: setup.Gate, contenders: GivenMany | None = None, *, reason: str, accept_worse: bool = False
) -> tuple[Gating | None, Path | None]:
    """Write a new baseline of these contenders, or of all that the old one names.

    Returns the result of gating it, None without a comparable old baseline, and where the old one is kept.
    Raises ConfigError, and writes nothing, when nobody says why, or `accept_worse` is false and it is worse
    than the old one, drops a contender, or changes one while the data changed, too.
    """
    if not reason.strip():
        raise ConfigError('an update needs a reason for reviewers; add --reason "..."')
    if contenders is None and gate.baseline is None:
        raise ConfigError(f"there is no baseline at {gate.path} to update; name the contenders to begin one")
    gate, refs = _in_place(gate, contenders)
    differing = gate.differing
    comparable = None if differing or gate.baseline is None else _aligned(gate)
    now = run(gate, refs)
    rows: dict[str, BaselineComparison] = {}
    if comparable:
        known = ((own, comparable.needed().find(own.label)) for own in now)
        rows = {own.label: BaselineComparison(comparable, own, before) for own, before in known if before}
    gating = Gating(gated(comparable, [*rows.values()])) if comparable and rows else None
    if not accept_worse:
        _refuse_adverse(gate, now, [*rows.values()], differing)
    embedder = gate.embedder or (gate.baseline.embedder if gate.baseline else "auto")
    written = Baseline(
        tool=TOOL,
        date=day(gate.now),
        dataset=gate.dataset.name,
        split=gate.split or gate.dataset.report_split or "all",
        limit=gate.limit,
        embedder=gate.dataset.embedder or embedder if embedder == "auto" else embedder,  # what auto stands for
        tokens=gate.tokens,
        dialect=setup.DIALECT,
        hashes=Hashes(**gate.hashes, sources=setup.sources_hash()),
        platform=setup.platform_name(),
        reason=reason.strip(),
        contenders=tuple(_kept_anew(gate, own, None if accept_worse else rows.get(own.label)) for own in now),
        states={name: dict(state) for name, state in gate.states().items()},
    )
    copy = None if gate.baseline is None else backup_path(gate.path)
    write_texts({**({copy: read_bytes(gate.path)} if copy else {}), gate.path: written.text()})
    return gating, copy


def _in_place(gate: setup.Gate, contenders: GivenMany | None) -> tuple[setup.Gate, list[ContenderRef]]:
    """The contenders, those of the baseline where none are named; ConfigError for one that no file may name.

    A single one takes the place of a single one of the baseline, whatever their names.
    """
    old = gate.baseline
    if contenders is None:
        instead = f"name what is used now: {gate.replacing('CONTENDER')}"
        naming = with_fields(Naming.of_baseline(gate.path), instead=instead)
        kept = gate.needed().contenders
        again = (partial(read_again, naming, gate.dataset, row.label, row.kind, row.written) for row in kept)
        return gate, collect_errors(*again)
    refs = read_contenders(contenders)
    if old is None or len(refs) != 1 or len(old.contenders) != 1:
        return gate, refs
    renamed = replace(old, contenders=(replace(old.contenders[0], label=refs[0].one.label),))
    return with_fields(gate, baseline=renamed), refs


def _aligned(gate: setup.Gate) -> setup.Gate:
    """The gate, its baseline's lists in the order of our queries; DataError when it has not one list a query."""
    ids, old, again = [query.id for query in gate.queries], gate.needed(), shlex.join(gate.rebaseline)
    contenders = []
    for kept in old.contenders:
        lists = {row.id: row for row in kept.lists}
        if len(kept.lists) != len(ids) or lists.keys() != set(ids):
            raise DataError(
                f"the baseline {quote(str(gate.path), PATH_WIDTH)} lacks lists of "
                f"{quote(kept.label)}; restore it from version control, or write it again: {again}"
            )
        contenders.append(replace(kept, lists=tuple(lists[id_] for id_ in ids)))
    return with_fields(gate, baseline=replace(old, contenders=tuple(contenders)))


def _kept(baseline: Baseline, ref: ContenderRef) -> BaselineContender:
    label = ref.one.label
    if kept := baseline.find(label):
        return kept
    labels = [other.label for other in baseline.contenders]
    such = quote(f"{labels[0]}={ref.written or label}", PATH_WIDTH)
    raise ConfigError(
        f"{quote(label)} is not in the baseline{nearest(label, labels)}; write the label to compare "
        f"with before it, as in {such}"
    )


def _refuse_adverse(
    gate: setup.Gate, now: Sequence[ContenderLists], rows: Sequence[BaselineComparison], differing: Collection[str]
) -> None:
    """ConfigError for an adverse update: it fails, loses more than .01 nDCG@10, or drops a contender.

    So is one where a contender changed together with the data, for nobody could tell what it cost. The hash of a
    configuration depends on the corpus, so it says nothing where that changed.
    """
    by_label, known = {own.label: own for own in now}, gate.baseline.contenders if gate.baseline else ()
    gone = [visible(kept.label) for kept in known if kept.label not in by_label]
    reasons = [f"{', '.join(gone)} would no longer be gated"] if gone else []
    reasons += [
        f"{row.now.label}: {say(row.findings[0])}"
        for row in rows
        if row.verdict == "fail" or row.against_baseline.ndcg < -SMALL
    ]
    if reasons:
        raise ConfigError(
            f"{'; '.join(reasons)}: the update would hide this; nothing was written. "
            "To accept it, add --accept-worse"
        )
    pairs = [(by_label[kept.label], kept) for kept in known if kept.label in by_label]
    changed = [
        quote(kept.label)
        for own, kept in pairs
        if own.strategy != kept.strategy
        or ("corpus" not in differing and gate.configuration(own.config) != kept.configuration)
    ]
    if differing and changed:
        raise ConfigError(
            f"{', '.join(differing)} and {', '.join(changed)} changed, so a decline cannot be measured; nothing "
            "was written. Update twice, first with the contenders of the baseline, or add --accept-worse"
        )


def _kept_anew(gate: setup.Gate, now: ContenderLists, before: BaselineComparison | None) -> BaselineContender:
    """What is kept. The anchor stays, unless the contender is significantly better, or accepted as worse."""
    config, deep, date = now.config, now.values.deep, day(gate.now)
    rows = zip(gate.queries, now.values.matrix.T.tolist(), now.lists, now.deep, now.broken, strict=True)
    kept = BaselineContender(
        label=now.label,
        kind=now.ref.one.kind,
        written=now.ref.written,
        strategy=now.strategy,
        limit=config.limit if config else None,
        configuration=gate.configuration(config),
        deep=deep,
        anchor_date=date,
        anchor_deep=deep,
        lists=tuple(
            BaselineList(
                id=query.id,
                values=tuple(values),
                anchor=None,
                list_hash=setup.list_hash(listed, far),
                scores_hash=setup.scores_hash(listed, far),
                first=tuple((id_, float(f"{score:.{DIGITS}g}")) for id_, score in listed[:SHALLOW]),
                broken=broken,
                ties=(ties := (setup.runs(listed), setup.runs(far))),
                settled_hash=setup.settled_hash((listed, far), ties),
            )
            for query, values, listed, far, broken in rows
        ),
        answered=now.answered,
        settings=(settings(config) or "") if config else "",
    )
    if before is None or before.against_anchor.better or before.against_anchor.fails:
        return kept
    return kept.anchored(before.baseline)
