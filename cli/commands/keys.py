"""`pointsman keys`: create, list, rotate, revoke."""

from collections.abc import Mapping
from typing import Any

import click

from cli import output
from cli.context import Session, json_option, pass_session


@click.group()
def keys() -> None:
    """API keys: whose they are and what they may do."""


@keys.command()
@click.option("--tenant", required=True)
@click.option("--scopes", required=True, help="Comma-separated: runs, invoke, operate, admin.")
@click.option("--expires-at", default="", help="RFC 3339 time with its offset; never if absent.")
@json_option
@pass_session
def create(session: Session, tenant: str, scopes: str, expires_at: str, as_json: bool) -> None:
    """Make a key. It is shown once."""
    body = {"tenant": tenant, "scopes": [scope.strip() for scope in scopes.split(",") if scope.strip()]}
    if expires_at:
        body["expires_at"] = expires_at
    made = session.do(lambda api: api.call("POST", "/v1/operator/keys", body=body))
    _show_once(made, as_json)


@keys.command()
@click.argument("key_id")
@click.option("--grace", "grace_s", default=0.0, help="Seconds for which the old text still holds; 0: it ends now.")
@json_option
@pass_session
def rotate(session: Session, key_id: str, grace_s: float, as_json: bool) -> None:
    """Give a key a new text. It is shown once."""
    body = {"grace_s": grace_s}
    _show_once(session.do(lambda api: api.call("POST", f"/v1/operator/keys/{key_id}:rotate", body=body)), as_json)


def _show_once(made: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        output.show_json({"id": made["id"], "key": made["key"]})
    else:
        output.console.print(f"id  {made['id']}\nkey {made['key']}", highlight=False)
        output.errors.print("the key is shown this once; keep it now")


@keys.command("list")
@json_option
@pass_session
def list_(session: Session, as_json: bool) -> None:
    """List keys, never their secrets."""
    answer = session.do(lambda api: api.get("/v1/operator/keys"))
    if as_json:
        output.show_json(answer)
        return
    rows = (
        (
            item["id"],
            item["tenant"],
            ",".join(item["scopes"]),
            output.when(item["created_at"]),
            output.when(item["expires_at"]),
            output.when(item["revoked_at"]),
            output.when(item.get("former_until")),
        )
        for item in answer["keys"]
    )
    output.show_rows(
        "Keys", ("id", "tenant", "scopes", "created", "expires", "revoked", "old text until"), rows, "no keys"
    )


@keys.command()
@click.argument("key_id")
@pass_session
def revoke(session: Session, key_id: str) -> None:
    """End a key; every replica refuses it within five seconds."""
    session.do(lambda api: api.call("DELETE", f"/v1/operator/keys/{key_id}"))
    output.console.print(f"key {key_id} is revoked")
