"""The command line: its errors and exit codes. Each group of commands has a module.

With ``--json``, stdout gets one JSON document and nothing else; stderr gets progress and warnings. Exit codes:
0 fine, 1 search got worse (`gate`), 2 usage or bad input, 3 inconclusive (`--strict`), 4 environment.
"""

import errno
import io
import logging
import re
import sys
import traceback
from collections.abc import Sequence
from importlib import resources
from typing import Any

import click

from steelyard import __version__
from steelyard.base.errors import ConfigError, MachineError, SteelyardError, harmless, nearest, quote
from steelyard.base.files import STRICT_JSON
from steelyard_eval.cli.check_compare_explain import check, compare, explain, report, runs
from steelyard_eval.cli.gate_init_export import export, gate, init
from steelyard_eval.cli.import_record_demo import demo, import_, record
from steelyard_eval.cli.index_vault_doctor import doctor, index, vault
from steelyard_eval.cli.options import tell
from steelyard_eval.cli.recommend_learn_judge import judge, learn, recommend, tune
from steelyard_eval.cli.search_serve import search, serve
from steelyard_eval.common import process
from steelyard_eval.common.console import LOGGER, folded, with_colours
from steelyard_eval.common.process import INTERRUPTED, checked_source_date, was_interrupted

COMMAND_GROUPS = {
    "Measure": (check, compare, explain, runs, report),
    "Choose": (recommend, tune, learn, judge),
    "Keep": (gate, init, export),
    "Data": (import_, record, demo),
    "Search": (index, search, serve, vault, doctor),
}


class _Messages(logging.Handler):
    """Prints notes and warnings on stderr, each message once a command."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self._shown:
            self._shown.add(message)
            _say("warning" if record.levelno >= logging.WARNING else "note", message)


def _say(kind: str, message: str) -> None:
    text = f"{kind}: {harmless(message)}"
    shown = folded(text, sys.stderr)
    click.echo(shown.replace(f"{kind}:", with_colours(f"{kind}:", kind, sys.stderr), 1), err=True)


_OUT_OF_MEMORY = ("failed to map segment", "can't start new thread")
_MEMORY_ENDED = "the command ran out of memory; allow more with --memory, or use less data"


def _took_all_memory(error: BaseException) -> bool:
    """SystemError is raised where Python had no memory left to say so."""
    return isinstance(error, MemoryError | SystemError) or any(text in str(error) for text in _OUT_OF_MEMORY)


_SECRET = re.compile(
    r"\s*postgres(ql)?(\+\w+)?:(//)?([^/@:]*:[^@]*@|.*[?&]\w*password=)", re.IGNORECASE | re.DOTALL
)
"""An address of a database with a password, also where no address is meant or it is misspelt."""


class _Main(click.Group):
    """Turns errors raised on purpose into one message and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,  # noqa: ANN401 -- click's own signature
    ) -> Any:  # noqa: ANN401 -- as above
        """Ctrl-C says the same and ends with the same code wherever it falls, also before a command begins."""
        level = LOGGER.level
        LOGGER.setLevel(logging.INFO)  # --quiet raises it
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.ClickException as error:
            text = io.StringIO()
            error.show(text)
            tell(text.getvalue().rstrip("\n"))
            code = error.exit_code
        except (click.Abort, KeyboardInterrupt, Exception) as error:
            if isinstance(error, click.Abort) or was_interrupted(error):
                click.echo(INTERRUPTED, err=True)
                code = 130
            elif _took_all_memory(error):  # said here, where the command has ended and so has its bound
                _say("error", _MEMORY_ENDED)
                code = MachineError.exit_code
            else:
                raise
        finally:
            LOGGER.setLevel(level)
        if standalone_mode:
            sys.exit(code)
        return code

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The options of all commands are one, wherever they stand."""
        flags = {
            name: option.is_flag
            for option in self.params
            for name in option.opts
            if isinstance(option, click.Option)
        }
        end = args.index("--") if "--" in args else len(args)
        first, rest, words = list[str](), list[str](), iter(args[:end])
        for word in words:
            name, given, _ = word.partition("=")
            (first if name in flags else rest).append(word)
            if flags.get(name) is False and not given:
                first += [value for value in [next(words, None)] if value is not None]
        return super().parse_args(ctx, [*first, *rest, *args[end:]])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A name that is no command is answered by what does it."""
        if any(map(_SECRET.match, args)):  # before any message repeats it
            raise ConfigError(
                "the address of the database holds a password, which files and process lists would show; "
                "put it in PGPASSWORD or ~/.pgpass instead"
            )
        typed = args[0]
        if typed not in self.commands and not typed.startswith("-"):
            meant = STRICT_JSON.decode(resources.files(__package__).joinpath("meant.json").read_text("utf-8"))
            hint = f"; did you mean {meant[typed]!r}?" if typed in meant else nearest(typed, self.commands)
            ctx.fail(f"there is no command {quote(typed)}{hint if 'did you mean' in hint else ''}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in COMMAND_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(str(one.name), one.get_short_help_str(100)) for one in commands], 12)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 -- click's own signature
        messages = _Messages()
        LOGGER.addHandler(messages)
        ctx.call_on_close(lambda: LOGGER.removeHandler(messages))
        try:
            checked_source_date()
            return super().invoke(ctx)
        except SteelyardError as error:
            _say("error", str(error))
            ctx.exit(error.exit_code)
        except KeyboardInterrupt as error:
            raise click.Abort from error
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever reads the output has enough: click ends quietly
                raise
            place = f"{error.filename}: " if error.filename else ""
            _say("error", f"{place}{error.strerror or error}; free space or check permissions")
            ctx.exit(MachineError.exit_code)
        except ModuleNotFoundError as error:
            _say("error", f"{error}; install steelyard again with its dependencies")
            ctx.exit(MachineError.exit_code)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:  # a fault of ours: never exit code 1, which says that relevance got worse
            if was_interrupted(error) or _took_all_memory(error):
                raise
            tell(traceback.format_exc())
            _say("error", "this is a bug in steelyard; please report it with the lines above")
            ctx.exit(MachineError.exit_code)


def _bound(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if ctx.resilient_parsing:
        return
    try:
        ctx.with_resource(process.bounded(process.read_size(value) if value else None))
    except ValueError as error:
        raise click.BadParameter(f"{value!r}: {error}", ctx, param) from None


def _hush(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        LOGGER.setLevel(logging.ERROR)


MEMORY = "Use at most this much memory, such as 2G (default: three quarters of the machine's)."


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="steelyard")
@click.option("--json", is_flag=True, help="Print one JSON document on stdout.")
@click.option("--memory", metavar="SIZE", expose_value=False, callback=_bound, help=MEMORY)
@click.option(
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=_hush,
    help="Print the answer and errors, no notes.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print all rows, tables and notes.")
def main(json: bool, verbose: bool) -> None:
    """Choose a hybrid-search strategy and its weights for your data, and test the gain.

    Every command takes these options. `steelyard COMMAND --help` lists the command's own options, with examples.
    """


for commands in COMMAND_GROUPS.values():
    for one in commands:
        main.add_command(one)
