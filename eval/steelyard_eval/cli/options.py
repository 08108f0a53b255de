"""Commands made of functions: a parameter is an argument or an option, the docstring is the help.

An option has the name, the default and the type of its parameter, and what the docstring says of it; what a
command hands on (`**options`) is declared by the functions that it calls. A name has one type in all commands.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Executor
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import click
from click.core import ParameterSource

from steelyard.base.errors import harmless, nearest, quote
from steelyard_eval.common.console import LOGGER, isolated

if TYPE_CHECKING:
    from steelyard_eval.views.frames import Answered
    from steelyard_eval.workbench.workbench import Workbench

Handed: TypeAlias = Any  # options that a command hands on, by their names, to the function that does its work
EMBEDDERS = ("auto", "recorded", "lsa", "none", "minilm", "minilm-int8", "wordllama", "api")
"""The embedders of data sets, as `datasets.manifest` has them, which would be loaded for every command."""


class Name(click.types.StringParamType):
    """Text that the help calls by what it names."""

    def __init__(self, name: str) -> None:
        self.name = name


class EmbedderName(click.Choice[str]):
    """One of EMBEDDERS, or one of the models that the data set has recorded, as recorded:MODEL."""

    def __init__(self) -> None:
        super().__init__(EMBEDDERS)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """See click.Choice.convert; which models there are is known when the data set is read."""
        return value if value.startswith("recorded:") else super().convert(value, param, ctx)


class Jobs(click.ParamType[int | Executor]):
    """A number of processes, or the address of a Dask scheduler, which becomes an executor."""

    name = "N|tcp://HOST:PORT"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Executor:
        """Read a number or an address."""
        if isinstance(value, str) and "://" in value:
            from steelyard_eval.recording.workers import scheduled

            return scheduled(value)
        return click.IntRange(1, 256).convert(cast("int", value), param, ctx)


_FILES = "baseline data dataset document explore_file feedback file junit log markdown model_labels out recording"
_FILES += " report results vault weights workflow write_runs"
TYPES: dict[str, click.ParamType[Any]] = {
    **dict.fromkeys(_FILES.split(), click.Path()),
    **dict.fromkeys(("contender", "current", "against"), Name("contender")),
    **dict.fromkeys(
        ("configuration", "learn.current", "system", "explore", "tune.strategy"), Name("configuration")
    ),
    "strategy": Name("strategy"),
    **dict.fromkeys(("metric", "metrics", "trend"), Name("metric")),
    **dict.fromkeys(("budget", "share"), click.FloatRange(0, 1)),
    **dict.fromkeys(("run", "other", "max_pairs", "tokens"), click.IntRange(1)),
    "embedder": EmbedderName(),
    "embedding_calls": click.FloatRange(0, 100),
    **dict.fromkeys(("filter_", "scope"), Name("field=value")),
    "set_": Name("name=value"),
    **dict.fromkeys(("for_", "to"), Name("target")),
    "http": click.IntRange(1, 65_535),
    "intents": click.Choice(["classified", "given"]),
    "jobs": Jobs(),
    "latency": click.FloatRange(0),
    "limit": click.IntRange(1, 10_000),
    "seed": click.IntRange(0),
}
"""Parameter -> what its value may be, in every command but those that are named before a dot."""


def command(
    *called: Callable[..., object], leave: str = "", typed: bool = False
) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function; it hands on the parameters of what is `called`, but for those to `leave`.

    Parameters without a star before them are arguments, the others options. `typed` is for commands that take a
    query, which may begin with a dash.
    """

    def made(function: Callable[..., None]) -> click.Command:
        text, helps, examples = described(function)
        job = function.__name__.strip("_")
        own = inspect.signature(function).parameters.values()
        parameters = {one.name: one for one in own if one.kind is not one.VAR_KEYWORD}
        handed = {name: one for other in called for name, one in _handed(other)}
        for other in called:
            helps = {**described(other)[1], **helps}
        given = {name: one for name, one in handed.items() if name not in leave.split()} | parameters
        arguments = {one.name for one in own if one.kind is one.POSITIONAL_OR_KEYWORD}
        params: list[click.Parameter] = [
            _argument(one, job) for name, one in parameters.items() if name in arguments
        ]
        params += [_option(one, job, helps.get(name, "")) for name, one in given.items() if name not in arguments]
        shown = "\n".join(f"  {line}" for line in examples)
        return (QueryCommand if typed else click.Command)(
            job,
            callback=function,
            params=params,
            help=text,
            short_help=text.partition("\n")[0],
            epilog=f"\b\nExamples:\n{shown}",
        )

    return made


@cache
def described(function: Callable[..., object]) -> tuple[str, dict[str, str], list[str]]:
    """The text of a docstring, what it says of each parameter, and its examples."""
    text, *parts = re.split(r"^(\w+)\n-{3,}\n", inspect.getdoc(function) or "", flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    entries = r"^(\w[\w, ]*?)(?: : .*|: (.*)|)(?:\n|$)((?: {4}.*\n?|\n)*)"
    found = re.findall(entries, sections.get("Parameters", ""), re.MULTILINE)
    told = ((names, " ".join(f"{first} {rest}".replace("`", "").split())) for names, first, rest in found)
    helps = {name: help_ for names, help_ in told for name in names.split(", ")}
    return text.strip(), helps, sections.get("Examples", "").strip().split("\n")


def _handed(function: Callable[..., object]) -> Iterator[tuple[str, inspect.Parameter]]:
    """The parameters of a function that may stay as they are."""
    for name, one in inspect.signature(function).parameters.items():
        if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) and (
            one.default is not one.empty or one.kind is one.KEYWORD_ONLY
        ):
            yield name, one


def _argument(one: inspect.Parameter, job: str) -> click.Argument:
    many, needed = str(one.annotation).startswith("tuple"), one.default is one.empty
    metavar = f"{one.name.upper() if needed else f'[{one.name.upper()}]'}{'...' if many else ''}"
    kind, count = _kind(one, job), -1 if many else 1
    given = {} if needed or many else {"default": one.default}  # a default of None counts as given
    return click.Argument([one.name], nargs=count, required=needed, type=kind, metavar=metavar, **given)


def _option(one: inspect.Parameter, job: str, text: str) -> click.Option:
    name, annotation = one.name.strip("_").replace("_", "-"), str(one.annotation)
    if "bool" in annotation:
        spelled = f"--{name}" if one.default is False else f"--{name}/--no-{name}"
        return click.Option([spelled, one.name], is_flag=True, default=one.default, help=text)
    many, needed = annotation.startswith("tuple"), one.default is one.empty
    return click.Option(
        [f"--{name}", one.name], type=_kind(one, job),
        multiple=many, required=needed, **({} if many or needed else {"default": one.default}),
        show_default=bool(one.default) and not many, help=f"{text} Repeatable." if many else text,
    )  # fmt: skip


def _kind(one: inspect.Parameter, job: str) -> click.ParamType[Any]:
    """The words of a Literal, else what `TYPES` says of the name, else the type of the parameter."""
    annotation = str(one.annotation)
    if "Literal[" in annotation:
        return click.Choice(re.findall(r"['\"]([^'\"]+)['\"]", annotation))
    simple = click.INT if "int" in annotation else click.FLOAT if "float" in annotation else click.STRING
    return TYPES.get(f"{job}.{one.name}") or TYPES.get(one.name, simple)


class QueryCommand(click.Command):
    """Takes an argument such as ``-incident`` as text; a misspelt ``--option`` is refused as everywhere."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 -- those of click.Command
        kwargs["context_settings"] = {"ignore_unknown_options": True, "help_option_names": ["--help"]}
        super().__init__(*args, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click.Command; an argument with a blank before its ``=`` is no option."""
        args = ["--help" if text == "-h" else text for text in args]
        known = {name for option in self.get_params(ctx) for name in (*option.opts, *option.secondary_opts)}
        for text in args[: args.index("--")] if "--" in args else args:
            name = text.partition("=")[0]
            if name.startswith("--") and name not in known and " " not in name:
                raise click.NoSuchOption(name, possibilities=sorted(known), ctx=ctx)
        return super().parse_args(ctx, args)


def bench_of(dataset: str, named: Sequence[str | None], options: dict[str, Handed]) -> Workbench:
    """The jobs on a data set, by the options of `load`, which are taken out of the others.

    What embeds is, for auto, what the weights files that are `named` were tuned with.
    """
    from steelyard_eval.datasets import load
    from steelyard_eval.recording.workspace import embedder_of
    from steelyard_eval.workbench.workbench import Workbench

    data = load(dataset, options.pop("intents", None))
    bench = Workbench(data, options.pop("embedder"), options.pop("jobs", 1))
    bench.embedder = embedder_of(bench.dataset, bench.embedder, named)
    return bench


def separated(contenders: Sequence[str]) -> list[str]:
    """The contenders of a command, of which one argument may name several, separated by commas."""
    from steelyard_eval.common.configurations import split_contenders

    return [one for text in contenders for one in split_contenders(text)]


def pairs(texts: Sequence[str], option: str, known: Collection[str] = ()) -> dict[str, str]:
    """The NAME=VALUE pairs of an option; BadParameter for what is none, and for a name that is not `known`."""
    found = {}
    for text in texts:
        name, given, value = (part.strip() for part in text.partition("="))
        if not (name and given and value):
            raise click.BadParameter(f"{text!r} is not a pair; write NAME=VALUE", param_hint=option)
        if known and name not in known:
            raise click.BadParameter(f"unknown setting {quote(name)}{nearest(name, known)}", param_hint=option)
        found[name] = value
    return found


def standing(function: Callable[..., None]) -> Callable[..., None]:
    """Once a command has succeeded, dataset.json says its --embedder to all later ones; auto takes that out."""

    @wraps(function)
    def choosing(*args: Handed, **kwargs: Handed) -> None:
        from steelyard_eval.datasets import manifest  # with all data sets: not for every command

        ctx = click.get_current_context()
        folder, given = Path(str(ctx.params["dataset"])), ctx.params["embedder"]
        names = [given] if isinstance(given, str) else list(given or ())
        name = names[0] if len(names) == 1 else ""  # two are compared, and none is chosen
        typed = name and ctx.get_parameter_source("embedder") is ParameterSource.COMMANDLINE
        asks = ctx.params.get("apply") is not False or not wants_json()  # judge with --json asks nothing
        writes = typed and asks and not ctx.params.get("list_") and not ctx.params.get("dry_run")
        if writes and name == "auto":
            manifest.choose_for(folder, None)
        function(*args, **kwargs)
        if writes and name != "auto" and manifest.choose_for(folder, name):
            note(f"dataset.json now says {name}, so later commands use it too; --embedder auto undoes that")

    return choosing


def wants_json() -> bool:
    """Whether one JSON document is asked for."""
    return bool(click.get_current_context().find_root().params.get("json"))


def put(document: object, text: str) -> None:
    """Print the document where JSON is asked for, else the text."""
    if wants_json():
        click.echo(json.dumps(document, indent=2, sort_keys=True, allow_nan=False))
    else:
        show(text)


def put_answer(answered: Answered, *below: str) -> None:
    """Print an answer, or its document; below it what was written, and on stderr what to know of it."""
    from steelyard_eval.views import terminal

    full = bool(click.get_current_context().find_root().params.get("verbose"))
    text = terminal.render(answered.result, full=full, notes=False)
    put(answered.record, "\n".join([text, *(["", *below] if below else [])]))
    for told in terminal.noted(answered.result, full):
        note(told)


def show(text: str) -> None:
    """Print a text with control characters escaped."""
    click.echo(isolated(harmless(text, colours=True)) if sys.stdout.isatty() else harmless(text))


def tell(text: str) -> None:
    """Print a note, warning or error on stderr, made harmless."""
    click.echo(harmless(text), err=True)


def note(text: str) -> None:
    """Print a note on stderr, unless --quiet."""
    LOGGER.info("%s", text)
