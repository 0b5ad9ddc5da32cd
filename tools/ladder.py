"""The ladder of quality: counts, from the tests' own cases, how far each adapter is proved.

    python -m tools.ladder            write adapters/quality.py and the table in docs/guides/adapters.md
    python -m tools.ladder --check    write nothing; exit 1 if one of them is not what the cases say

The same cases give the same bytes. Run it after adding recorded exchanges, labelled failures, rows or adapters.
"""

import argparse
import json
import sys
from dataclasses import astuple
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cli.samples import Asked, read_samples  # noqa: E402  (the root must be on the path first)
from libs.host.world import real_world  # noqa: E402
from services.provider_adapter.adapters.registry import ADAPTERS  # noqa: E402
from services.provider_adapter.app.classify import ClassifyFailure  # noqa: E402
from services.provider_adapter.domain.adapter import Quality  # noqa: E402

CASES = ROOT / "tests" / "cases"
FILE = ROOT / "services" / "provider_adapter" / "adapters" / "quality.py"
PLANTED = frozenset({"unknown", "strange"})
GUIDE = ROOT / "docs" / "guides" / "adapters.md"
BEGIN, END = "<!-- ladder: written by `python -m tools.ladder` -->\n", "<!-- end of the ladder -->\n"
TITLES = "adapter exchanges unknown_fields fault_rows reconciles prices_usage classified".split()
HEAD = '''"""How far each adapter is proved. Written by `python -m tools.ladder` from tests/cases; never edited.

Exchanges, those with unknown fields, rows of faults, reconciles, prices usage, classified as labelled, labelled.
"""

from collections.abc import Mapping

from services.provider_adapter.domain.adapter import Quality

QUALITY: Mapping[str, Quality] = {
'''


def quality_of(name: str, labels: list[bool]) -> Quality:
    """The rungs of one adapter; `labels` tell of each labelled failure whether it is classified so."""
    adapter = ADAPTERS[name]
    records = sorted((CASES / "exchanges" / name).glob("*.json"))
    return Quality(
        exchanges=len(records),
        unknown_fields=sum(map(stray, records)),
        fault_rows=len(adapter.table.rows),
        reconciles=adapter.manifest.reconcile_by != "none",
        prices_usage=bool(adapter.manifest.cost_fields),
        classified=sum(labels),
        labelled=len(labels),
    )


def stray(path: Path) -> bool:
    """Whether a reply on record has a field that nobody accounts for. A record that is named so was planted."""
    record = json.loads(path.read_text(encoding="utf-8"))
    return bool(record["outcome"].get("unknown_fields")) and not PLANTED & set(path.stem.split("_"))


def labelled() -> dict[str, list[bool]]:
    """For each adapter: of every certain failure of its providers, whether it is classified as labelled."""
    judge = ClassifyFailure(real_world().clock)
    found: dict[str, list[bool]] = {name: [] for name in ADAPTERS}
    text = (CASES / "provider_errors.jsonl").read_text(encoding="utf-8")
    for sample in read_samples(text, Asked()):
        if sample.adapter in found and sample.expected and not sample.doubtful:
            fault = judge(sample.adapter, sample.api, sample.phase, sample.reply)
            told = {"category": fault.category.value, "scope": fault.scope.value, "retryable": fault.retryable}
            found[sample.adapter].append(told == sample.expected)
    return found


def written() -> dict[Path, str]:
    """Each file as the cases want it."""
    labels = labelled()
    ladder = {name: quality_of(name, labels[name]) for name in sorted(ADAPTERS)}
    lines = [f'    "{name}": Quality{astuple(quality)},\n' for name, quality in ladder.items()]
    before, _, rest = GUIDE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return {FILE: HEAD + "".join(lines) + "}\n", GUIDE: f"{before}{BEGIN}\n{table(ladder)}\n{END}{after}"}


def table(ladder: dict[str, Quality]) -> str:
    """The ladder for a reader."""
    rows = [[title.replace("_", " ") for title in TITLES], ["---"] * len(TITLES)]
    for name, quality in ladder.items():
        facts = ["yes" if fact else "no" for fact in (quality.reconciles, quality.prices_usage)]
        counts = [str(count) for count in (quality.exchanges, quality.unknown_fields, quality.fault_rows)]
        rows.append([f"`{name}`", *counts, *facts, f"{quality.classified} of {quality.labelled}"])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = [path for path, text in written().items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        if check:
            sys.stderr.write(f"{path.relative_to(ROOT)} is not what tests/cases say; run: python -m tools.ladder\n")
        else:
            path.write_text(written()[path], encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
