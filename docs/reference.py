"""What mkdocs needs of us: the help of each command, and the parameters of functions in the form that it reads."""

import re
from collections.abc import Iterator

import click
import griffe

from steelyard_eval.cli.main import main


def helps(group: click.Group, path: str) -> Iterator[tuple[str, str]]:
    """The words of a command, and its help, for every command of a group and of the groups in it."""
    for name, command in group.commands.items():
        words = f"{path} {name}"
        if isinstance(command, click.Group):
            yield from helps(command, words)
        else:
            yield words, command.get_help(click.Context(command, info_name=words, terminal_width=100))


def on_page_markdown(markdown: str, page: object, **_: object) -> str:
    """The text of a page of the site."""
    if page.file.src_uri != "commands.md":  # type: ignore[attr-defined] -- mkdocs has no types
        return markdown
    parts = [f"### {words}\n\n```text\n{told}\n```\n" for words, told in helps(main, "steelyard")]
    return "\n".join([markdown, "## Every command\n", *parts])


class ParameterLines(griffe.Extension):
    """Parameters stand as ``name: text``, for their types stand in the signature; griffe wants the text below."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Rewrite the section of a docstring before it is parsed."""
        if obj.docstring is not None:
            text, head, section = obj.docstring.value.partition("\nParameters\n")
            lines = re.sub(r"^(\w[\w, ]*): (?=\S)", r"\1\n    ", section, flags=re.MULTILINE)
            obj.docstring.value = f"{text}{head}{lines}"
