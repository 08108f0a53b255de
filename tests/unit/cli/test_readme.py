"""The README's commands exist and do what it says."""

import re
from pathlib import Path

import pytest

from steelyard_eval.cli.commands import load_command
from steelyard_eval.cli.main import main

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_first_commands_of_the_readme_are_make_demo_and_make_test() -> None:
    first = re.search(r"```sh\n(.*?)```", README, re.DOTALL)

    assert first is not None
    assert first[1].split("\n")[:2] == ["make demo", "make test"]


@pytest.mark.parametrize(
    "target", sorted(set(re.findall(r"make (\w+)`", README)) | {"demo", "test", "lab", "lint"})
)
def test_every_make_target_of_the_readme_stands_in_the_makefile(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)
    assert target in re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()


def test_ci_runs_the_readmes_test_command() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("line", [line for line in README.splitlines() if line.startswith("steelyard ")])
def test_every_steelyard_command_of_the_readme_takes_its_options(line: str) -> None:
    words = line.split("#")[0].split()
    command = load_command(words[1])
    known = {name for option in command.params for name in option.opts}

    assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_command_has_help_and_json(name: str) -> None:
    command = load_command(name)

    assert command.help
    if name != "serve":  # its standard output is the client's
        assert "--json" in {opt for option in command.params for opt in option.opts}


def test_the_files_the_readme_links_to_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).is_file(), target
