"""The command line. Commands are thin: they read options, call the API, and print.

With ``--json`` a command prints one JSON document on stdout and nothing else. Progress and warnings
go to stderr. Exit codes: 0 fine, 2 usage or bad input, 4 environment.
"""

from __future__ import annotations

import errno
import json
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from steelyard import __version__
from steelyard.errors import MachineError, SteelyardError
from steelyard_eval.__main__ import INTERRUPTED


class _Warnings(logging.Handler):
    """Prints what the engine warns of on stderr, each message once a command."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self._told:
            self._told.add(message)
            click.echo(f"warning: {message}", err=True)


class _Main(click.Group):
    """Turns errors raised on purpose into one message and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,  # noqa: ANN401 -- click's own signature
    ) -> Any:  # noqa: ANN401
        """Ctrl-C says the same and ends with the same code wherever it falls, also before a command begins."""
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.Abort:
            click.echo(INTERRUPTED, err=True)
            code = 130
        except click.ClickException as error:
            error.show()
            code = error.exit_code
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 -- click's own signature
        warnings = _Warnings()
        logging.getLogger("steelyard").addHandler(warnings)
        try:
            return self._invoke(ctx)
        finally:
            logging.getLogger("steelyard").removeHandler(warnings)

    def _invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 -- click's own signature
        try:
            return super().invoke(ctx)
        except SteelyardError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo(INTERRUPTED, err=True)
            ctx.exit(130)
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever reads the output has enough: click ends quietly
                raise
            place = f"{error.filename}: " if error.filename else ""
            click.echo(f"error: {place}{error.strerror or error}; free space or check permissions", err=True)
            ctx.exit(MachineError.exit_code)
        except ModuleNotFoundError as error:
            click.echo(f"error: {error}; install steelyard again with its dependencies", err=True)
            ctx.exit(MachineError.exit_code)


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="steelyard")
def main() -> None:
    """Find which hybrid-search strategy and which weights are right for a memory, and prove it."""


Command = Callable[..., None]
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
_system = click.option("--system", default="echovault", show_default=True, help="name or name:profile.")
_weights = click.option("--weights", type=click.Path(), help="A search-weights.json; it beats --system.")
_limit = click.option("--limit", type=click.IntRange(1, 10_000), help="How many results.")
_filter = click.option("--filter", "filters", multiple=True, metavar="FIELD=VALUE", help="Scope; repeatable.")
_split = click.option("--split", help="train, dev, test, all; the data set's own choice by default.")
_embedder = click.option(
    "--embedder",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "recorded", "lsa", "none", "minilm", "minilm-int8", "api"]),
    help="recorded vectors of the data set, lsa fitted on its texts (auto: the first there is), none; "
    "minilm, minilm-int8 and api need an extra.",
)
_vault_embedder = click.option(
    "--embedder",
    type=click.Choice(["lsa", "none", "minilm", "minilm-int8", "api"]),
    help="The vault's own by default, lsa for a new one; minilm, minilm-int8 and api need an extra.",
)
_seed = click.option("--seed", type=click.IntRange(0), default=0, show_default=True)


def _print(document: object, as_json: bool, text: str) -> None:
    click.echo(json.dumps(document, indent=2, sort_keys=True, allow_nan=False) if as_json else text)


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _strategies(texts: Sequence[str]) -> list[str]:
    """Strategies hold commas, so each --strategies option is one, or several separated by semicolons."""
    return [part.strip() for text in texts for part in text.split(";") if part.strip()]


@main.command()
@click.argument("dataset", type=click.Path())
@_json
def check(dataset: str, as_json: bool) -> None:
    """Validate a data set; every fault at once."""
    from steelyard_eval.datasets import check as validate

    report = validate(dataset)
    document: dict[str, Any] = {"faults": [str(fault) for fault in report.faults], "notices": list(report.notices)}
    if report.dataset is not None:
        found = report.dataset
        document |= {"name": found.name, "entries": len(found.entries), "queries": len(found.queries)}
        document |= {"sha256": found.sha256, "vectors": sorted("/".join(key) for key in found.vectors)}
    lines = [*document["faults"], *(f"note: {notice}" for notice in report.notices)]
    if report.dataset is not None:
        lines.append(f"{found.name}: {len(found.entries)} entries, {len(found.queries)} queries, no faults")
    else:
        lines.append(f"{len(report.faults)} faults")
    _print(document, as_json, "\n".join(lines))
    if report.faults:
        sys.exit(2)


@main.command()
@click.argument("dataset", type=click.Path())
@click.argument("vault", type=click.Path())
@_vault_embedder
@_json
def index(dataset: str, vault: str, embedder: str | None, as_json: bool) -> None:
    """Build or update a vault from a data set: entries, keyword indexes, vectors."""
    from steelyard_eval.datasets import load
    from steelyard_eval.vaults import index_dataset

    counts = index_dataset(load(dataset), vault, embedder)
    _print(counts, as_json, f"{vault}: " + ", ".join(f"{value} {name}" for name, value in counts.items()))


@main.command()
@click.argument("vault", type=click.Path())
@_vault_embedder
@_json
def reindex(vault: str, embedder: str | None, as_json: bool) -> None:
    """Rebuild keyword indexes and vectors after a change of model, dimension or tokenizer."""
    from steelyard_eval.vaults import reindex_vault

    counts = reindex_vault(vault, embedder)
    _print(counts, as_json, f"{vault}: " + ", ".join(f"{value} {name}" for name, value in counts.items()))


@main.command()
@click.argument("vault", type=click.Path())
@click.argument("query")
@_system
@_weights
@_limit
@_filter
@click.option("--semantic", default="always", show_default=True, type=click.Choice(["always", "auto", "never"]))
@click.option("--explain", is_flag=True, help="Show how each score came about.")
@_json
def search(
    vault: str,
    query: str,
    system: str,
    weights: str | None,
    limit: int | None,
    filters: tuple[str, ...],
    semantic: str,
    explain: bool,
    as_json: bool,
) -> None:
    """Search a vault."""
    from steelyard.entry import Query
    from steelyard_eval.show import hits
    from steelyard_eval.vaults import open_searcher, parse_filters

    with open_searcher(vault, system, weights, limit) as searcher:
        result = searcher.search(Query(query, filters=parse_filters(filters)), semantic=semantic)
        shown = [searcher.system.present(hit) for hit in result.hits]
        trees = [result.explain(hit.entry.id) for hit in result.hits] if explain else []
        if not result.degraded and semantic == "always" and result.strategy != searcher.config.effective:
            click.echo("note: the vault has no vectors of the configured model; keywords answered alone", err=True)
        document = {
            "system": searcher.config.name,
            "strategy": str(result.strategy),
            "embedding_calls": result.embedding_calls,
            "degraded": result.degraded,
            "hits": shown,
        }
    text = hits(shown)
    if explain:
        document["explanations"] = [tree.to_json() for tree in trees]
        text += "".join(f"\n\n{hit['id']}\n{tree}" for hit, tree in zip(shown, trees, strict=True))
    _print(document, as_json, text)


@main.command()
@click.argument("vault", type=click.Path())
@click.argument("ids", nargs=-1, required=True)
@_json
def get(vault: str, ids: tuple[str, ...], as_json: bool) -> None:
    """Whole entries by id, details included."""
    from steelyard_eval.vaults import read_entries

    records = read_entries(vault, ids)
    lines = [json.dumps(record, indent=2, sort_keys=True) for record in records]
    _print({"entries": records}, as_json, "\n".join(lines))


@main.command()
@click.argument("vault", type=click.Path())
@click.argument("query", default="")
@_system
@click.option("--limit", type=click.IntRange(1, 10_000), default=10, show_default=True)
@_filter
@click.option("--semantic", type=click.Choice(["always", "auto", "never"]), help="The system's own by default.")
@click.option("--topup/--no-topup", default=None, help="Fill up with recent entries; the system's own by default.")
@_json
def context(
    vault: str,
    query: str,
    system: str,
    limit: int,
    filters: tuple[str, ...],
    semantic: str | None,
    topup: bool | None,
    as_json: bool,
) -> None:
    """Relevant entries, filled up with recent ones; only recent ones without a QUERY."""
    from steelyard_eval.show import hits
    from steelyard_eval.vaults import open_searcher, parse_filters

    with open_searcher(vault, system, None, limit) as searcher:
        found, total = searcher.context(query, parse_filters(filters), semantic=semantic, topup_recent=topup)
        shown = [searcher.system.present(hit) for hit in found]
    _print({"total": total, "entries": shown}, as_json, f"{hits(shown)}\n{len(shown)} of {total} entries")


@main.command()
@click.argument("dataset", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--systems", default="fts,bm25,vector,echovault", show_default=True)
@_split
@_limit
@_embedder
@_json
def record(
    dataset: str, out: str, systems: str, split: str | None, limit: int | None, embedder: str, as_json: bool
) -> None:
    """Save the signal tables of the systems named, a folder each under OUT."""
    from steelyard_eval.datasets import load
    from steelyard_eval.record import record_systems

    folders = record_systems(load(dataset), _listed(systems), Path(out), split, limit or 10, embedder)
    text = "\n".join(f"{folder}: {rows} rows" for folder, rows in folders.items())
    _print({"recordings": [{"folder": k, "rows": v} for k, v in folders.items()]}, as_json, text)


@main.command()
@click.argument("dataset", type=click.Path())
@click.option("--systems", default="fts,bm25,vector,echovault", show_default=True)
@click.option(
    "--strategies", multiple=True, help="A strategy over fts, bm25, vector, l0-l2; repeat, or separate by ;"
)
@click.option("--metrics", default="nDCG@10,R@10,RR@10,RecallAll@10,Judged@10", show_default=True)
@click.option("--baseline", help="A compared label; the first one by default.")
@_split
@_limit
@click.option("--runs", type=click.Path(), help="Write TREC runs to this folder.")
@click.option("--out", type=click.Path(), help="Write the JSON document to this file, for `steelyard report`.")
@_embedder
@_seed
@_json
def compare(
    dataset: str,
    systems: str,
    strategies: tuple[str, ...],
    metrics: str,
    baseline: str | None,
    split: str | None,
    limit: int | None,
    runs: str | None,
    out: str | None,
    embedder: str,
    seed: int,
    as_json: bool,
) -> None:
    """Compare systems and strategies on the judged queries of a split."""
    from steelyard.files import canonical, write_text
    from steelyard_eval.compare import compare as run
    from steelyard_eval.datasets import load
    from steelyard_eval.show import comparison, tests

    found = run(
        load(dataset),
        _listed(systems),
        _strategies(strategies),
        metrics=_listed(metrics),
        baseline=baseline,
        split=split,
        limit=limit,
        embedder=embedder,
        runs=Path(runs) if runs else None,
        seed=seed,
    )
    document = found.to_json()
    if out:
        write_text(out, canonical(document))
    for notice in document["notices"]:
        click.echo(f"note: {notice}", err=True)
    facts = document["dataset"]
    head = f"{facts['name']} ({document['split']}): {facts['judged']} queries, limit {document['limit']}"
    _print(
        document,
        as_json,
        f"{head}, vectors {document['model'] or 'none'}\n\n"
        f"{comparison(document, _listed(metrics)[:2])}\n\n{tests(document)}",
    )


@main.command()
@click.argument("dataset", type=click.Path())
@click.option("--system", default="plain", show_default=True, help="name or name:profile.")
@click.option("--strategy", help="The strategy to start from; the system's own by default.")
@click.option("--metric", default="nDCG@10", show_default=True)
@click.option("--out", type=click.Path(), default="search-weights.json", show_default=True)
@_limit
@_embedder
@_seed
@_json
def tune(
    dataset: str,
    system: str,
    strategy: str | None,
    metric: str,
    out: str,
    limit: int | None,
    embedder: str,
    seed: int,
    as_json: bool,
) -> None:
    """Search better weights, prove them on held-out queries, write search-weights.json."""
    from steelyard_eval.datasets import load
    from steelyard_eval.show import tuning
    from steelyard_eval.tune import tune as run

    found = run(load(dataset), system, strategy, metric=metric, limit=limit, embedder=embedder, seed=seed)
    found.config.save(out)
    _print(found.to_json(), as_json, f"{tuning(found.to_json())}\nwritten: {out}")


@main.command()
@click.argument("results", type=click.Path())
@click.option("--out", type=click.Path(), default="reports/report", show_default=True)
@_json
def report(results: str, out: str, as_json: bool) -> None:
    """Write HTML, Markdown and JSON from the JSON document of `steelyard compare`."""
    from steelyard_eval.report import load_results, write_report

    files = [str(path) for path in write_report(load_results(Path(results)), Path(out))]
    _print({"files": files}, as_json, "\n".join(files))


@main.command()
@click.argument("dataset", type=click.Path())
@click.argument("query_id")
@click.option("--system", help="name or name:profile; echovault by default.")
@click.option("--strategy", help="A strategy over the system plain, instead of a system.")
@click.option("--weights", type=click.Path(), help="A search-weights.json, instead of a system.")
@click.option("--against", metavar="SYSTEM|STRATEGY|FILE", help="A second configuration: who moved, and why.")
@click.option("--entry", metavar="ID", help="How this entry's score came about, or why it has none.")
@_limit
@_embedder
@_json
def explain(
    dataset: str,
    query_id: str,
    system: str | None,
    strategy: str | None,
    weights: str | None,
    against: str | None,
    entry: str | None,
    limit: int | None,
    embedder: str,
    as_json: bool,
) -> None:
    """Explain one query of a data set, signal by signal, and what another configuration changes."""
    from steelyard_eval.datasets import load
    from steelyard_eval.explain import Named
    from steelyard_eval.explain import explain as run

    kinds = {"system": system, "strategy": strategy, "weights": weights}
    given = [Named(kind, text) for kind, text in kinds.items() if text is not None]
    if len(given) > 1:
        raise click.UsageError("--system, --strategy and --weights name one configuration; give one of them")
    config = given[0] if given else Named("system", "echovault")
    found = run(load(dataset), query_id, config, against, entry=entry, limit=limit, embedder=embedder)
    _print(found.to_json(), as_json, str(found))


@main.command()
@_json
def doctor(as_json: bool) -> None:
    """Check this machine: versions, SQLite, extras, folders, fonts; each with its remedy."""
    from steelyard_eval.doctor import diagnose

    found = diagnose()
    _print(found.to_json(), as_json, str(found))
    if not found.fit:
        sys.exit(MachineError.exit_code)


@main.command()
@click.option("--out", type=click.Path(), default="reports/demo", show_default=True)
@_json
def demo(out: str, as_json: bool) -> None:
    """The main job on the data set inside the package: compare, tune, report."""
    from steelyard_eval.demo import demo as run
    from steelyard_eval.show import comparison, tuning

    outcome, tuned, files = run(Path(out))
    paths = [str(path) for path in files]
    document = {**outcome.to_json(), "tuning": tuned.to_json(), "files": paths}
    text = f"{comparison(outcome.to_json())}\n\n{tuning(tuned.to_json())}\n\n" + "\n".join(paths)
    _print(document, as_json, text)
