"""The commands that bring data: import, record, demo."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from steelyard.base.errors import ConfigError
from steelyard_eval.cli.options import Handed, bench_of, command, note, pairs, put
from steelyard_eval.common import SYSTEMS, extension
from steelyard_eval.common.formatting import counted
from steelyard_eval.workbench.workbench import Workbench, load

if TYPE_CHECKING:
    from steelyard.config import SearchConfig
    from steelyard_eval.extensions.importers.run import Import

MAX_WEIGHTS_BYTES = 2**20


@command()
def import_(
    source: str | None = None,
    out: str | None = None,
    *,
    kind: str | None = None,
    map_: tuple[str, ...] = (),
    set_: tuple[str, ...] = (),
    list_: bool = False,
) -> None:
    """Import the store of another program as a data set.

    SOURCE is a file, a folder, or a kind; import knows where programs of that kind keep their store. To update an
    imported data set, name only its folder. From the weights file of system-spec-kit
    (configs/search-weights.json), import makes a weights file OUT.

    Parameters
    ----------
    kind: Kind of store, if import does not recognise it; see --list.
    map_: FIELD=COLUMN: read this field of entries from this column or key, such as text=content.
    set_: sql=SELECT: select the rows of an SQLite file to import as entries. model=NAME: name the vectors' model.
    list_: List the kinds, and where each program keeps its store.

    Examples
    --------
    steelyard import echovault mine
    steelyard import old.db mine --set "sql=SELECT id, note AS text FROM notes"
    steelyard import memories.csv mine --map text=body --map created_at=day
    steelyard import mine
    """
    if list_:
        _list_kinds()
        return
    if source is None or (out is None and not (Path(source) / "dataset.json").is_file()):
        raise click.UsageError(
            "name SOURCE and the folder OUT to write, or only the folder of an earlier import; kinds: --list"
        )
    import msgspec  # at the top it would take a tenth of the time of --help

    importing = extension("importers")
    if out is None:
        if kind or map_ or set_:
            raise click.UsageError(f"{source} stores how it was imported; name SOURCE and OUT to change that")
        _tell(importing.refresh(source))
    elif config := _spec_kit_weights(source):
        from steelyard_eval.choose.answer import write_weights

        told = "".join(f"\n{line}" for line in write_weights({Path(out): config}))
        put(config.to_json(), f"written: {out}\n{config.strategy}{told}")
    else:
        settings = pairs(set_, "--set", importing.Options.__dataclass_fields__.keys() - {"columns"})
        try:
            options = msgspec.convert(
                {**settings, "columns": pairs(map_, "--map")}, importing.Options, strict=False
            )
        except msgspec.ValidationError as error:
            raise click.BadParameter(str(error), param_hint="--set") from None
        _tell(importing.import_store(source, out, kind, options))


def _tell(done: Import) -> None:
    for text in done.notes:
        note(text)
    ones = {"entries": "entry", "queries": "query"}
    counts = ", ".join(
        counted(count, ones.get(name, name.removesuffix("s")), name) for name, count in done.counts.items()
    )
    found = f"{counts or 'nothing'}, from {done.kind}{'' if done.changed else '; nothing has changed'}"
    text = f"{done.folder}: {found}\nnext: steelyard recommend {done.folder}"
    put(done.to_json(), text)


def _list_kinds() -> None:
    rows: list[dict[str, Any]] = [
        {"kind": kind.name, "reads": kind.about, "places": [str(path) for path in kind.homes(os.environ)]}
        for kind in extension("importers").importers().values()
    ]
    width = max(len(row["kind"]) for row in rows)
    lines = [f"{row['kind']:{width}}  {row['reads']}" for row in rows]
    places = [f"{row['kind']:{width}}  {', '.join(row['places'])}" for row in rows if row["places"]]
    put(rows, "\n".join([*lines, "", "Where programs keep their stores (steelyard import KIND OUT):", *places]))


def _spec_kit_weights(source: str) -> SearchConfig | None:
    from steelyard.base.extensions import extension as extension_of_engine
    from steelyard.config import is_foreign, read_json

    path = Path(source)
    if path.suffix != ".json" or not path.is_file() or path.stat().st_size > MAX_WEIGHTS_BYTES:
        return None
    try:
        record = read_json(source)
    except ConfigError:  # a table of another form, which its importer reads
        return None
    return extension_of_engine("spec_kit_file").read_foreign(record) if is_foreign(record) else None


@command(Workbench.record, load, leave="lists queries qrels vectors text_for_embedding")
def record(
    dataset: str,
    out: str,
    *,
    systems: str = ",".join(SYSTEMS),
    runs: str | None = None,
    rerank: Literal["top", "all"] = "top",
    **options: Handed,
) -> None:
    """Save the results of retrievers, to compare and tune on later.

    record writes the signal table of each system to its own folder under OUT.

    Parameters
    ----------
    runs: NAME=CONTENDER,...: record lists of other engines (TREC runs, URLs) into OUT instead.
    rerank: Candidates that a re-ranker scores: top (those that systems read), or all, to replay any top.

    Examples
    --------
    steelyard record mine recordings --systems bm25,echovault
    steelyard record mine lists --runs bm25=a.run,dense=b.run
    """
    from steelyard_eval.recording.replay import intents_of

    bench = bench_of(dataset, [], options)
    folders = bench.record(out, systems, lists=runs, rerank=rerank, **options)
    which = f", intents {source}" if (source := intents_of(bench.dataset)) else ""
    text = "\n".join(f"{folder}: {rows} rows{which}" for folder, rows in folders.items())
    put({"recordings": [{"folder": k, "rows": v} for k, v in folders.items()], "intents": source}, text)


@command()
def demo(*, out: str = "reports/demo") -> None:
    """Run recommend on the data set that comes with the package.

    demo writes the report and the weights.

    Parameters
    ----------
    out: Folder of all files.

    Examples
    --------
    steelyard demo --out reports/demo
    """
    from steelyard_eval.choose.recommend import recommend
    from steelyard_eval.datasets import load as load_dataset
    from steelyard_eval.datasets.manifest import workshop
    from steelyard_eval.recording.next_steps import WEIGHTS, current_path, shell_command, try_path
    from steelyard_eval.views import terminal

    folder, here, target = workshop(), Path.cwd(), Path(out) / WEIGHTS
    data = load_dataset(folder.relative_to(here) if folder.is_relative_to(here) else folder)
    answer, _ = recommend(data).saved(target, data)  # so that the steps name these files
    files = [*answer.report(out), *([current_path(target), try_path(target)] if answer.attempt else [target])]
    learn = shell_command("learn", data, options={"--no-labels": True, "--out": Path(out) / "learned" / WEIGHTS})
    document = {**answer.to_json(), "files": [str(path) for path in files], "learn": learn}
    asked = shell_command(
        "recommend", data, options={"--for": "opensearch", "--out": Path(out) / "opensearch.json"}
    )
    told = ["", f"What its simulated feedback log says by itself: {learn}", f"The best for OpenSearch: {asked}"]
    put(document, "\n".join([terminal.render(answer.result), "", *map(str, files), *told]))
