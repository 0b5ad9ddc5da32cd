"""`pointsman prices import litellm`: what it writes, says and refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from cli import output
from cli.commands.prices import prices


def table(path: Path, **rates: Any) -> Path:
    """A table of models at a price for a picture; None = the table states none."""
    entries = {name: {"mode": "image_edit", "output_cost_per_image": rate} for name, rate in rates.items()}
    path.write_text(json.dumps(entries))
    return path


def imported(*arguments: object) -> Result:
    """The command's words."""
    return CliRunner().invoke(prices, ["import", "litellm", *map(str, arguments)])


def test_rules_are_written_and_the_rest_is_counted(tmp_path: Path) -> None:
    """COST-4, OPS-8: rules on standard output, counts and reasons on standard error; --report names the models."""
    file = table(tmp_path / "t.json", a=0.04, b=0.05, c=None)
    said = imported(file)
    assert said.exit_code == 0
    written = yaml.safe_load(said.stdout)
    assert [(rule["id"], rule["rate"], rule["currency"]) for rule in written["prices"]] == [
        ("a", "0.04", "USD"), ("b", "0.05", "USD"),
    ]  # fmt: skip
    assert "MIT License" in said.stdout
    assert "2 rules, 1 model without a price" in said.stderr
    assert "the table states no price of pictures" not in said.stderr
    assert "the table states no price of pictures" in imported(file, "--report").stderr


def test_only_some_in_another_currency(tmp_path: Path) -> None:
    """OPS-8: --only takes names by a pattern; --currency says what the table counts in."""
    file = table(tmp_path / "t.json", aa=1, ab=2, ba=3)
    said = imported(file, "--only", "a*", "--currency", "CNY")
    assert [(rule["id"], rule["currency"]) for rule in yaml.safe_load(said.stdout)["prices"]] == [
        ("aa", "CNY"), ("ab", "CNY"),
    ]  # fmt: skip
    assert imported(file, "--currency", "yuan").exit_code == output.WRONG_USE


def test_another_import_into_the_same_file_tells_what_changed(tmp_path: Path) -> None:
    """COST-3, OPS-8: versions rise where prices did, and what moved by more than the given percent is told."""
    out = tmp_path / "prices.yaml"
    imported(table(tmp_path / "t.json", a=1.0, b=1.0, c=1.0), "--out", out)
    said = imported(table(tmp_path / "t.json", a=1.0, b=1.02, c=1.5), "--out", out, "--json", "--more-than", "10")
    assert json.loads(said.stdout)["changes"] == [
        {"id": "c", "change": "changed", "percent": "50.0", "prices": "1 -> 1.5"}
    ]
    rules = {rule["id"]: rule for rule in yaml.safe_load(out.read_text())["prices"]}
    assert {name: (rule["version"], rule["rate"]) for name, rule in rules.items()} == {
        "a": (1, "1"), "b": (2, "1.02"), "c": (2, "1.5"),
    }  # fmt: skip
    told = imported(table(tmp_path / "t.json", b=1.02, c=0.0), "--out", out).stderr
    assert "gone" in told
    assert "100.0" in told


@pytest.mark.parametrize("held", ["[", "prices: 3", "- 1"])
def test_a_file_that_is_no_import_is_left_alone(tmp_path: Path, held: str) -> None:
    """OPS-8: what --out names is not overwritten where it is something else."""
    out = tmp_path / "notes.txt"
    out.write_text(held)
    said = imported(table(tmp_path / "t.json", a=1.0), "--out", out)
    assert said.exit_code == output.WRONG_USE
    assert "name another file" in said.stderr
    assert out.read_text() == held


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    """OPS-8: a wrong FILE is named."""
    file = tmp_path / "t.json"
    file.write_text("no")
    said = imported(file)
    assert said.exit_code == output.WRONG_USE
    assert "is no JSON" in " ".join(said.stderr.split())  # a long path wraps the line
