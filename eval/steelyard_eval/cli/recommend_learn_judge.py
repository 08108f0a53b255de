"""The commands that choose: recommend, tune, learn, judge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from steelyard.base.files import regular_target
from steelyard_eval.cli.options import (
    Handed,
    bench_of,
    command,
    note,
    put,
    put_answer,
    separated,
    standing,
    wants_json,
)
from steelyard_eval.common import extension
from steelyard_eval.workbench.workbench import Workbench, load

if TYPE_CHECKING:
    from steelyard_eval.choose.answer import ChosenAnswer
    from steelyard_eval.datasets.logs import HeldLog


def _choose(dataset: str, only: str | None, *, for_: str = "", **options: Handed) -> None:
    """Recommend, over all families or `only` one strategy.

    Parameters
    ----------
    for_: Choose only what this system can express, so that `steelyard export` can write it.
    """
    written = {name: options.pop(name) for name in ("out", "report", "floor")}
    regular_target(Path(written["out"]))  # before the work, whose result would be lost
    bench = bench_of(dataset, [options["current"], only], options)
    _finish(bench.recommend(only=only, target=for_, **options), bench, **written)


def _finish(
    answer: ChosenAnswer,
    bench: Workbench,
    *,
    out: str = "search-weights.json",
    report: str | None = None,
    floor: str | None = None,
) -> None:
    """Write the weights, with the floors that were asked for, and print the answer.

    Parameters
    ----------
    out: Weights file to write.
    report: Write the report as HTML, Markdown and JSON to this folder.
    floor: Also find a score threshold that keeps this promise: lost=10%, false=5%, or both.
    """
    floors: list[str] = []
    if floor is not None:
        from steelyard_eval.choose.find_floor import floored

        answer, floors = floored(answer, bench.dataset, floor, bench.embedder)
    answer, files = answer.saved(out, bench.dataset)
    files += [str(path) for path in (answer.report(report) if report else [])]
    put_answer(answer, *floors, *files)
    if answer.interrupted:
        raise KeyboardInterrupt  # the result is printed; the exit code marks it as incomplete


_LEFT = "only timed target queries qrels vectors text_for_embedding"


@command(_finish, _choose, Workbench.recommend, load, leave=f"weights_only {_LEFT}")
@standing
def recommend(dataset: str, **options: Handed) -> None:
    """Recommend a strategy and weights, and say why.

    recommend tunes every family and system over all signals of the data set. If the verdict is ship, the weights
    file has the choice. If it is keep, the file has what you use today. If it is try, recommend writes two files
    instead: *.current.json (what you use today) and *.try.json (what to try). It also writes these two for keep if
    what you use today does not meet --for, --latency or --embedding-calls. Ctrl-C ends the search early: nothing
    ships then, and the exit code is 130.

    Examples
    --------
    steelyard recommend mine --current echovault
    steelyard recommend mine --current today=prod.run --report reports/mine
    steelyard recommend mine --recording lists --current bm25
    """
    _choose(dataset, None, **options)


@command(_finish, _choose, Workbench.recommend, load, leave=f"tokens {_LEFT}")
@standing
def tune(dataset: str, strategy: str, **options: Handed) -> None:
    """Tune the settings and weights of one strategy.

    STRATEGY is a system, a strategy or a weights file. It is also what you use today, unless --current names
    another. tune uses the split train if there is one, and never test. Files and verdicts are as for `recommend`.

    Examples
    --------
    steelyard tune mine echovault --out search-weights.json
    steelyard tune mine "rrf(bm25, vector)" --weights-only
    """
    _choose(dataset, strategy, **options)


@command(Workbench.learn, load, _finish, leave="report source queries qrels vectors text_for_embedding jobs")
@standing
def learn(
    dataset: str,
    *,
    from_: str = "",
    dry_run: bool = False,
    rule: Literal["labels", "adaptive"] = "labels",
    feedback: str | None = None,
    keep_queries: bool = False,
    **options: Handed,
) -> None:
    """Learn weights from a feedback log.

    learn corrects for which results were shown, and where. With --from, it first makes the log from the files of
    another program: sessions of coding agents, traces, exports. Nothing leaves this machine. That log holds ids,
    places, scores and actions, but no texts of entries.

    If the verdict is ship, the weights file has the learned weights; if it is keep, the current ones. If it is
    try, learn writes *.current.json and *.try.json instead.

    Parameters
    ----------
    from_: Make the log from KIND or KIND:PATH. KIND is transcripts, otel, openinference or ubi. PATH is a file or
        folder (default: where that program keeps it).
    dry_run: With --from, print what would be written, and write nothing.

    Examples
    --------
    steelyard learn mine --from transcripts --dry-run
    steelyard learn mine --from otel:traces.jsonl
    steelyard learn mine --feedback prod.jsonl.gz --current "weighted_sum(0.3*bm25, 0.7*vector)"
    """
    bench = bench_of(dataset, [], options)
    log: str | HeldLog | None = feedback
    if from_:
        use = extension("usage").gather(bench.dataset, from_, log=feedback, keep_queries=keep_queries)
        if dry_run:
            put(use.to_json(), "".join([*use.lines, str(use)]))
            return
        use.write()
        log = use.held
        note(str(use))
    elif dry_run or keep_queries:
        raise click.UsageError("--dry-run and --keep-queries need --from KIND[:PATH]; add it")
    written = {name: options.pop(name) for name in ("out", "floor")}
    regular_target(Path(written["out"]))  # before the work, as for recommend
    _finish(bench.learn(log, rule=rule, **options), bench, **written)


@command(Workbench.judge, load, leave="contenders queries qrels vectors text_for_embedding jobs intents")
@standing
def judge(
    dataset: str,
    contender: tuple[str, ...] = (),
    *,
    out: str | None = None,
    judge: str = "judge",
    list_: bool = False,
    apply: bool = False,
    random: bool = False,
    pairs: bool = False,
    from_log: bool = False,
    feedback: str | None = None,
    second_judge_of: str = "",
    model: bool = False,
    max_pairs: int = 200,
    yes: bool = False,
    split: str | None = None,
    embedder: str = "auto",
    seed: int = 0,
) -> None:
    """Label the results of queries, one key each.

    Press 0 (not relevant), 1 (related), 2 (relevant) or 3 (answers the query). Move with j, k, h, l or the arrow
    keys. u undoes the last answers, q quits. judge saves every answer; the same command continues. --apply adds
    the labels to the data set.

    With a CONTENDER, judge draws queries at random and shows all results of the CONTENDERs. By these labels
    recommend may say ship. Without one, judge shows single pairs while no query has labels. By these recommend
    says try or keep.

    Parameters
    ----------
    out: Folder of the answers (default: DATASET/judgments).
    list_: Print the next pairs and quit.
    apply: Add the labels to the data set and quit.
    random: Label whole queries, drawn at random.
    pairs: Label single pairs of a query and an entry.
    from_log: Draw the queries from a feedback log, for `steelyard learn`.
    feedback: Feedback log for --from-log (default: the data set's own).
    model: Let a language model label pairs.
    max_pairs: Let the model label at most this many pairs.
    yes: Call the language model without confirmation.

    Examples
    --------
    steelyard judge mine
    steelyard judge mine --apply
    steelyard judge mine bm25 "rrf(bm25, vector)" --judge ann
    """
    from steelyard_eval.cli import judge_keys, judge_texts
    from steelyard_eval.datasets import load as load_dataset
    from steelyard_eval.datasets.second_labels import judged_twice
    from steelyard_eval.notebook.label.apply import apply as apply_labels
    from steelyard_eval.notebook.label.apply import drawn_from_log
    from steelyard_eval.notebook.label.desk import labelling_state, upcoming
    from steelyard_eval.notebook.label.judgment_file import folder_of, judgments_of
    from steelyard_eval.notebook.label.open import open_judging
    from steelyard_eval.notebook.label.statement import state_of
    from steelyard_eval.recording.workspace import embedder_of
    from steelyard_eval.result.sentences import say
    from steelyard_eval.result.structs import Message

    other_than_model = contender or list_ or random or from_log or second_judge_of or apply
    refusals = {
        "--random labels whole queries, --pairs single pairs; name one": random and pairs,
        "--feedback needs --from-log; add it": feedback and not from_log,
        "--pairs compares the usual strategies; leave out contenders and --from-log": pairs
        and (contender or from_log),
        "--model labels single pairs; leave out contenders, --list, --random, --from-log, --second-judge-of and "
        "--apply": model and other_than_model,
    }
    if refused := next((why for why, refuses in refusals.items() if refuses), None):
        raise click.UsageError(refused)
    given, kind = separated(contender) or None, True if random or from_log else False if pairs or model else None
    data, queries = load_dataset(dataset).embedded_by(embedder), list[str]()
    folder, asks = Path(out) if out else folder_of(data), not (wants_json() or apply or list_ or model)
    if from_log:
        known = len(data.queries)
        data, queries = drawn_from_log(data, seed, feedback, write=asks)
        if asks and len(data.queries) > known:
            note(say(Message("log_queries_added", {"count": len(data.queries) - known})))
    elif asks and not data.queries:
        for name in (judge, second_judge_of or judge):  # before queries are typed
            judgments_of(data, folder / f"{name}.jsonl")
        judge_keys.write_queries(data, seed)
        data = load_dataset(dataset).embedded_by(embedder)
    embedder = embedder_of(data, embedder, given or ())
    if apply and not (given or second_judge_of) and kind is None:
        kind = any(one.drawn for one in judgments_of(data, folder / f"{judge}.jsonl").values())
    session = open_judging(
        data, given, folder, judge, second_judge_of, split, seed, random=kind, queries=queries, embedder=embedder
    )
    if model:
        judge_keys.by_model(session, max_pairs, yes)
        return
    if apply:
        stated, done = {} if session.first else state_of(session), apply_labels(session)
        document: dict[str, object] = {"written": [str(path) for path in done.written], "stated": stated}
        document |= {"added": len(done.added), "changed": len(done.changed)}
        twice = [say(judged_twice(load_dataset(dataset)))] if session.first else []
        told = twice or judge_texts.applied(done, session, stated)
        put(document, "\n".join(told))
        return
    if list_:
        following, document = upcoming(session), labelling_state(session)
        put({**document, "next": following}, "\n".join(judge_texts.listed(following, session, document)))
        return
    if asks:
        judge_keys.work(session)
    document = labelling_state(session)
    where = [*judge_texts.saved(session, document)] if document["given"] else []
    put(document, "\n".join(judge_texts.progress_lines(document, where)))
