"""A hook of mkdocs: the site's page of commands ends with the help of each command, as the command prints it."""

from collections.abc import Iterator

import click

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
