"""Common features of every command: alternative names of options, --quiet, and examples in the help."""

from __future__ import annotations

import logging

import click

LOGGER = logging.getLogger("steelyard")
"""Warnings, and notes at the level INFO; the command line prints both on stderr."""

SPELLINGS = (
    ("-o", "--out"),
    ("-k", "--limit"),
    ("--system", "--systems"),
    ("--strategy", "--strategies"),
    ("--metric", "--metrics"),
)
"""Names of options that mean the same: a command that has one accepts the other too."""

EXAMPLES = {
    "import": [
        "steelyard import echovault mine",
        "steelyard import notes/ mine",
        "steelyard import memories.csv mine --map text=body --map created_at=day",
        "steelyard import mine",
        "steelyard import configs/search-weights.json search-weights.json",
    ],
    "check": ["steelyard check mine", "steelyard check mine --json"],
    "record": [
        "steelyard record mine recordings --systems bm25,echovault",
        "steelyard record mine lists --runs bm25=a.run,dense=b.run",
    ],
    "compare": [
        "steelyard compare mine --baseline echovault",
        'steelyard compare mine bm25 "rrf(bm25, vector)" --current today=prod.run',
        'steelyard compare mine --strategies "rrf(bm25, 2*vector)" --metrics MRR',
        "steelyard compare mine -o results.json",
    ],
    "recommend": [
        "steelyard recommend mine --current echovault -o search-weights.json",
        "steelyard recommend mine --current today=prod.run --report reports/mine",
        "steelyard recommend mine --recording lists --current bm25",
    ],
    "tune": [
        "steelyard tune mine echovault -o search-weights.json",
        'steelyard tune mine "rrf(bm25, vector)" --weights-only',
    ],
    "gate": [
        "steelyard gate mine",
        "steelyard gate mine --weights search-weights.json --strict",
        'steelyard gate mine --update --because "the new weights of March"',
    ],
    "init": ["steelyard init", "steelyard init mine --current prod.run"],
    "learn": [
        "steelyard learn mine --from transcripts --dry-run",
        "steelyard learn mine --from otel:traces.jsonl",
        "steelyard learn mine -o search-weights.json",
        'steelyard learn mine --feedback prod.jsonl.gz --current "weighted_sum(0.3*bm25, 0.7*vector)"',
        "steelyard learn mine --feedback prod.jsonl --current soleri --rule adaptive",
    ],
    "runs": [
        "steelyard runs mine",
        "steelyard runs mine 5 7",
        "steelyard runs mine --trend nDCG@10",
    ],
    "act": [
        "steelyard act feedback.jsonl 4be1a2f09c3d7e55 m1 --action cited",
        "steelyard act feedback.jsonl 4be1a2f09c3d7e55 --action none_useful",
    ],
    "report": ["steelyard report results.json -o reports/mine"],
    "explain": [
        "steelyard explain mine echovault",
        "steelyard explain mine q1 --against bm25",
        "steelyard explain mine q1 --entry m1",
    ],
    "judge": [
        "steelyard judge mine --list",
        "steelyard judge mine --apply",
        'steelyard judge mine bm25 "rrf(bm25, vector)" --judge ann',
        "steelyard judge mine --judge bob --second-to ann",
    ],
    "doctor": ["steelyard doctor", "steelyard doctor memory.db"],
    "demo": ["steelyard demo -o reports/demo"],
    "export": ["steelyard export es.json --to elasticsearch"],
    "index": [
        "steelyard index mine memory.db",
        "steelyard index mine memory.db --prune",
        "steelyard index mine memory.db --embedder minilm-int8",
        "steelyard index mine memory.db --weights search-weights.json",
        "steelyard index memory.db --rebuild --embedder lsa",
    ],
    "search": [
        'steelyard search memory.db "-incident" --system moltnet --weight w_recency=0.2',
        'steelyard search memory.db "how do we rotate keys" -k 5',
        'steelyard search agent.db team=shared/team.db "rotate keys" --system soleri',
        'steelyard search memory.db "rotate keys" --weights search-weights.json --explain',
    ],
    "serve": [
        "steelyard serve memory.db --weights search-weights.json --log feedback.jsonl",
        "steelyard serve memory.db --system echovault --scope project=api",
        "steelyard serve memory.db --log feedback.jsonl --explore search-weights.try.json",
    ],
    "get": ["steelyard get memory.db m1 m2"],
    "list": ["steelyard list memory.db --filter tags=auth --filter superseded=false"],
    "context": ['steelyard context memory.db "key rotation" -k 5', "steelyard context memory.db"],
}
"""The examples at the end of each command's help."""


def mannered(command: click.Command) -> click.Command:
    """Add the alternative names of options, --quiet, and the examples to a command."""
    for option in command.params:
        if isinstance(option, click.Option):
            _spell(option)
    command.params += [memory_option(), quiet_option()]
    if command.name in EXAMPLES:
        lines = "\n".join(f"  {line}" for line in EXAMPLES[command.name])
        command.epilog = f"\b\nExamples:\n{lines}"
    return command


def quiet_option() -> click.Option:
    """Make the option ``-q``, which silences everything on stderr except errors."""
    return click.Option(
        ["-q", "--quiet"],
        is_flag=True,
        expose_value=False,
        callback=_hush,
        help="No notes, warnings or progress on stderr, only errors.",
    )


def memory_option() -> click.Option:
    """Make the option ``--memory``, which bounds what a command may take; without it that is `memory.usual`."""
    return click.Option(
        ["--memory"],
        metavar="SIZE",
        expose_value=False,
        callback=_bound,
        help="The most memory to take, such as 2G; three quarters of the machine's by default.",
    )


def note(text: str) -> None:
    """Print a note on stderr."""
    LOGGER.info("%s", text)


def _spell(option: click.Option) -> None:
    for names in SPELLINGS:
        if set(names) & set(option.opts):
            option.opts = [*dict.fromkeys((*(n for n in names if len(n) == 2), *option.opts, *names))]


def _bound(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    from steelyard_eval.common import memory_limit

    if ctx.resilient_parsing:
        return
    try:
        ctx.with_resource(memory_limit.bounded(memory_limit.read_size(value) if value else None))
    except ValueError as error:
        raise click.BadParameter(f"{value!r}: {error}", ctx, param) from None


def _hush(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        LOGGER.setLevel(logging.ERROR)
