"""Commands that take a query, which may begin with a dash."""

from __future__ import annotations

import click


class QueryCommand(click.Command):
    """Takes an argument such as ``-incident`` as text when the command has no such option.

    An argument that begins with two dashes and has no blank before its ``=`` still counts as an option, so that
    a misspelt one is refused. All other commands follow click's own rules.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments in an order that click accepts: options, then ``--``, then texts like options."""
        before, marker, after = _split(args)
        options, texts = self._sorted(ctx, before)
        return super().parse_args(ctx, [*options, "--", *texts, *after] if texts or marker else options)

    def _sorted(self, ctx: click.Context, args: list[str]) -> tuple[list[str], list[str]]:
        """What click reads by itself, and the texts that begin with a dash."""
        takes_value = {
            name: not (option.is_flag or option.count)
            for option in self.get_params(ctx)
            if isinstance(option, click.Option)
            for name in (*option.opts, *option.secondary_opts)
        }
        options: list[str] = []
        texts: list[str] = []
        rest = iter(args)
        for argument in rest:
            if _is_text(argument, takes_value):
                texts.append(argument)
                continue
            options.append(argument)
            if takes_value.get(argument):
                options.extend(value for value in [next(rest, None)] if value is not None)
        return options, texts


def _split(args: list[str]) -> tuple[list[str], bool, list[str]]:
    """The arguments before the first ``--``, whether there is one, and those after it."""
    if "--" not in args:
        return args, False, []
    place = args.index("--")
    return args[:place], True, args[place + 1 :]


def _is_text(argument: str, options: dict[str, bool]) -> bool:
    """Whether an argument begins like an option but is a text."""
    if not argument.startswith("-") or argument in options:
        return False
    if argument.startswith("--"):
        return " " in argument.partition("=")[0]
    return not (options.get(argument[:2]) and argument[2:].isdigit())  # as in -k5
