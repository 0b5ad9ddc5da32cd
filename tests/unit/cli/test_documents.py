"""The commands of the README and the guides: they name what the shipped catalogue has, and flags that there are."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from cli.main import main

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
STARTS = ".venv/bin/pointsman "


def commands(document: Path) -> list[list[str]]:
    """Every command of the command line in the document's shell blocks, in words, without remarks."""
    blocks = re.findall(r"```sh\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith(STARTS)]


def verb_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that these words name, and what is left of them."""
    command: click.Command = main
    while isinstance(command, click.Group) and not (alone(command) and (words or [""])[0] not in command.commands):
        assert words, f"{command.name} needs a verb"
        assert words[0] in command.commands, words
        command, words = command.commands[words[0]], words[1:]
    return command, words


def alone(command: click.Group) -> bool:
    """Whether the verb means something without another one behind it."""
    return command.invoke_without_command


def shipped() -> dict[str, Any]:
    """The models of the catalogue that `make up` applies."""
    text = (ROOT / "deploy" / "catalogs" / "studio.yaml").read_text(encoding="utf-8")
    return {model["id"]: model for model in yaml.safe_load(text)["models"]}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_a_document_is_one(document: Path) -> None:
    """OPS-8: verbs, flags and numbers of arguments are those that there are, and models those that are shipped."""
    for words in commands(document):
        command, rest = verb_of(words)
        given = command.make_parser(click.Context(command)).parse_args(list(rest))[0]
        if "model" in given and command.name == "create":
            assert given["model"] in shipped(), words


def test_the_readme_shows_commands() -> None:
    """OPS-8: the rule above has something to look at."""
    assert len(commands(ROOT / "README.md")) >= 5


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_models_in_bodies_are_shipped(document: Path) -> None:
    """OPS-8: a body that somebody copies names a model that `make up` has."""
    named = re.findall(r'\{"model": ?"([^"]+)"', document.read_text(encoding="utf-8"))
    assert set(named) <= shipped().keys()
