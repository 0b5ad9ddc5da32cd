"""`pointsman classify`: what replies of providers prove, by the code that judges live ones. Asks no server."""

from collections.abc import Sequence
from typing import Any, TextIO

import click
from rich.text import Text

from cli import output
from cli.context import json_option
from cli.samples import Asked, Sample, Unreadable, read_samples
from libs.faults.fault import Fault
from libs.host.world import real_world
from services.provider_adapter.adapters.registry import ADAPTERS
from services.provider_adapter.app.classify import ClassifyFailure

LABELS = ("category", "scope", "retryable")
Verdict = dict[str, Any]


@click.command()
@click.argument("file", type=click.File("r", encoding="utf-8", errors="replace"))
@click.option(
    "--adapter", type=click.Choice([*sorted(ADAPTERS), "generic"]), help="Whose table to ask; else the sample's."
)
@click.option(
    "--api", default="", help="Which interface: chat, embedding, image, video, ocr, speech; else the sample's."
)
@click.option("--phase", type=click.Choice(["submit", "poll", "stream"]), help="When it was heard; else the sample's.")
@click.option("--status", type=click.IntRange(100, 599), help="The file is the bare body of a reply with this status.")
@click.option("--certain", is_flag=True, help="Leave out samples that are marked as doubtful.")
@json_option
def classify(
    file: TextIO,
    adapter: str | None,
    api: str,
    phase: str | None,
    status: int | None,
    certain: bool,
    as_json: bool,
) -> None:
    """Classify the replies in FILE (- for standard input): whose fault each is, and which clue says so.

    FILE is one sample in JSON, a sample a line, or a raw HTTP reply as `curl -i` prints it. A sample has http_status,
    headers, body, transport_error, and may have provider or adapter, api, phase, and the label `expected`. No server is
    asked and nothing leaves this machine. The exit code is 1 when a label disagrees.
    """
    try:
        samples = read_samples(file.read(), Asked(adapter or "", api, phase or "", status or 0))
    except Unreadable as error:
        output.fail(str(error), output.WRONG_USE, "`pointsman classify --help` names what can be read")
    judge = ClassifyFailure(real_world().clock)
    verdicts = [_verdict(sample, _judged(judge, sample)) for sample in samples if not (certain and sample.doubtful)]
    if as_json:
        output.show_json(verdicts)
    else:
        _show(verdicts)
    if any(verdict["agrees"] is False for verdict in verdicts):
        raise SystemExit(output.REFUSED)


def _judged(judge: ClassifyFailure, sample: Sample) -> Fault:
    try:
        return judge(sample.adapter, sample.api, sample.phase, sample.reply)
    except Fault as fault:  # an adapter or a phase that there is not
        text = "; ".join(f"{error.pointer} {error.reason}" for error in fault.errors)
        output.fail(f"{sample.name}: {text}", output.WRONG_USE, "`pointsman adapters` lists the adapters")


def _verdict(sample: Sample, fault: Fault) -> Verdict:
    told = {"category": fault.category.value, "scope": fault.scope.value, "retryable": fault.retryable}
    label = sample.expected
    return {
        "id": sample.name,
        "adapter": sample.adapter,
        "phase": sample.phase or "submit",
        "http_status": sample.reply.status or None,
        **told,
        "code": fault.code,
        "evidence": fault.metadata["evidence"],
        "reason": fault.metadata.get("reason"),
        "retry_after_ms": fault.retry_after_ms,
        "provider_code": fault.provider_code or None,
        "provider_message": fault.provider_message or None,
        "expected": None if label is None else {name: label.get(name) for name in LABELS if name in label},
        "doubtful": sample.doubtful,
        "agrees": None if label is None else all(label[name] == told[name] for name in LABELS if name in label),
    }


def _show(verdicts: Sequence[Verdict]) -> None:
    labelled = [verdict for verdict in verdicts if verdict["agrees"] is not None]
    columns = ["id", "adapter", "phase", "status", "category", "scope", "retryable", "code", "evidence"]
    output.show_rows("Replies", [*columns, *(["label"] if labelled else [])], (_row(v, labelled) for v in verdicts), "")
    if labelled:
        agreed = sum(verdict["agrees"] for verdict in labelled)
        output.console.print(f"labels that agree: {agreed} of {len(labelled)}", highlight=False)


def _row(verdict: Verdict, labelled: Sequence[Verdict]) -> tuple[object, ...]:
    code = verdict["code"] if verdict["reason"] is None else f"{verdict['code']} ({verdict['reason']})"
    cells = (
        verdict["id"],
        verdict["adapter"],
        verdict["phase"],
        verdict["http_status"],
        verdict["category"],
        verdict["scope"],
        "yes" if verdict["retryable"] else "no",
        code,
        verdict["evidence"],
    )
    return (*cells, _label(verdict)) if labelled else cells


def _label(verdict: Verdict) -> Text | str:
    if verdict["agrees"] is None:
        return ""
    if verdict["agrees"]:
        return Text("agrees", style="green")
    label = verdict["expected"]
    doubt = " (doubtful)" if verdict["doubtful"] else ""
    wanted = "/".join(str(label[name]) for name in ("category", "scope") if name in label)
    return Text(f"says {wanted}{doubt}", style="red")
