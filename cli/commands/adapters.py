"""`pointsman adapters`: the dialects of this release, and how far each is proved. Asks no server."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from cli import output
from cli.context import json_option
from services.provider_adapter.adapters.quality import QUALITY
from services.provider_adapter.adapters.registry import ADAPTERS
from services.provider_adapter.domain.adapter import Adapter, Quality

Facts = dict[str, Any]


@click.command()
@click.argument("name", required=False, type=click.Choice(sorted(ADAPTERS)), metavar="[NAME]")
@json_option
def adapters(name: str | None, as_json: bool) -> None:
    """List the adapters of this release, or tell everything about NAME.

    The ladder of quality counts recorded exchanges, those with a field that nobody accounts for (0 is the rung), lines
    of the fault table, and labelled failures that are classified as labelled. No server is asked.
    """
    facts = [facts_of(ADAPTERS[each]) for each in ([name] if name else sorted(ADAPTERS))]
    if as_json:
        output.show_json(facts[0] if name else facts)
    elif name:
        _show_one(facts[0])
    else:
        output.show_rows("Adapters", COLUMNS, map(_row, facts), "")


def facts_of(adapter: Adapter) -> Facts:
    """Everything that the manifest and the table of an adapter say, as JSON values."""
    manifest, quality = adapter.manifest, QUALITY.get(adapter.manifest.name, Quality())
    return {
        "name": manifest.name,
        "kinds": list(manifest.kinds),
        "synchronous_kinds": list(manifest.synchronous_kinds),
        "streamed_kinds": list(manifest.streamed_kinds),
        "auth": manifest.auth.told(),
        "materials": manifest.materials,
        "reconcile_by": manifest.reconcile_by,
        "reconcile_offers": list(manifest.reconcile_offers),
        "cancels": manifest.cancels,
        "limits": dict(manifest.limits),
        "states": {theirs: state.value for theirs, state in manifest.states.items()},
        "cost_fields": dict(manifest.cost_fields),
        "read_fields": sorted(manifest.read_fields),
        "ignored_fields": sorted(manifest.ignored_fields),
        "fault_headers": list(adapter.table.headers),
        "faults": [
            {"theirs": row.theirs, "ours": row.ours, "says": row.says or None, "status": row.status or None}
            for row in adapter.table.rows
        ],
        "quality": {
            "recorded_exchanges": quality.exchanges,
            "exchanges_with_unknown_fields": quality.unknown_fields,
            "fault_rows": quality.fault_rows,
            "reconciles": quality.reconciles,
            "prices_usage": quality.prices_usage,
            "classified_failures": quality.classified,
            "labelled_failures": quality.labelled,
        },
    }


COLUMNS = (
    *("id", "kinds", "synchronous", "reconcile", "cancels", "exchanges", "unknown fields"),
    *("fault rows", "prices usage", "classified"),
)


def _row(facts: Facts) -> tuple[object, ...]:
    quality = facts["quality"]
    return (
        facts["name"],
        ", ".join(facts["kinds"]),
        ", ".join(facts["synchronous_kinds"]),
        " + ".join([facts["reconcile_by"], *facts["reconcile_offers"]]),
        _yes(facts["cancels"]),
        quality["recorded_exchanges"],
        quality["exchanges_with_unknown_fields"],
        quality["fault_rows"],
        _yes(quality["prices_usage"]),
        f"{quality['classified_failures']} of {quality['labelled_failures']}",
    )


def _show_one(facts: Facts) -> None:
    told = {
        "kinds": ", ".join(facts["kinds"]),
        "synchronous": ", ".join(facts["synchronous_kinds"]) or "none",
        "streamed": ", ".join(facts["streamed_kinds"]) or "none",
        "auth": facts["auth"],
        "materials": facts["materials"],
        "reconcile": _ways(facts),
        "cancels": _yes(facts["cancels"]),
        **{name.replace("_", " "): _said(value) for name, value in facts["quality"].items()},
    }
    _pairs(f"Adapter {facts['name']}", ("what", "value"), told)
    _pairs("Limits that the provider documents", ("of", "limit"), facts["limits"])
    _pairs("States", ("theirs", "ours"), facts["states"])
    _pairs("Charged by", ("field", "unit"), facts["cost_fields"])
    faults = ([row["theirs"], row["ours"], row["says"], row["status"]] for row in facts["faults"])
    output.show_rows("Faults", ("theirs", "ours", "if it says", "if status"), faults, "no table of faults")
    for title, names in (("Fields that are read", "read_fields"), ("Ignored on purpose", "ignored_fields")):
        output.show_rows(title, ("field",), ([field] for field in facts[names]), f"{title.lower()}: none")


def _pairs(title: str, columns: Sequence[str], pairs: Mapping[str, object]) -> None:
    output.show_rows(title, columns, pairs.items(), f"{title.lower()}: none")


def _ways(facts: Facts) -> str:
    offers = "".join(f", {way} where a channel says so" for way in facts["reconcile_offers"])
    return f"{facts['reconcile_by']}{offers}"


def _said(value: object) -> object:
    return _yes(value) if isinstance(value, bool) else value


def _yes(value: bool) -> str:
    return "yes" if value else "no"
