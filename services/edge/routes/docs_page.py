"""The OpenAPI document as one page for people: no script, nothing fetched from anywhere."""

import json
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 20%, transparent); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0 } h2 { margin-top: 2.5rem }
code, pre { font: 14px/1.4 ui-monospace, monospace }
pre { overflow: auto; padding: .75rem; border: 1px solid var(--line) }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: .5rem .75rem }
summary { cursor: pointer } summary b { display: inline-block; min-width: 4.5rem } summary span { opacity: .75 }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; vertical-align: top; padding: .25rem .75rem
.25rem 0; border-bottom: 1px solid var(--line) }
"""
METHODS = ("get", "post", "put", "patch", "delete")


def render(document: dict[str, Any]) -> str:
    """The page."""
    info = document["info"]
    groups: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                groups.setdefault(_group(path), []).append(_operation(method, path, methods[method]))
    parts = [f"<h2>{escape(name)}</h2>{''.join(items)}" for name, items in groups.items()]
    schemas = [_schema(name, value) for name, value in sorted(document["components"]["schemas"].items())]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])} API</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        f"<h1>{escape(info['title'])}</h1><p>{escape(info['description'])} Send "
        "<code>Authorization: Bearer KEY</code>. "
        f'<a href="/openapi.json">openapi.json</a> · <a href="/errors">error codes</a></p>'
        f"{''.join(parts)}<h2>Shapes</h2>{''.join(schemas)}</body></html>"
    )


def _group(path: str) -> str:
    parts = [part for part in path.split("/") if part and part != "v1"]
    return " ".join(parts[:1]).partition(":")[0] or "server"


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    scopes = operation.get("x-scopes")
    need = f"<p>Needs a key with {' or '.join(f'<code>{escape(s)}</code>' for s in scopes)}.</p>" if scopes else ""
    rows = "".join(
        f"<tr><td><code>{escape(item['name'])}</code></td><td>{item['in']}</td>"
        f"<td>{escape(item.get('description', ''))}</td><td><code>{escape(_short(item['schema']))}</code></td></tr>"
        for item in operation["parameters"]
    )
    parameters = f"<table><tr><th>parameter<th>in<th>tells<th>type</tr>{rows}</table>" if rows else ""
    body = "".join(
        f"<p>Body, <code>{escape(media)}</code>{_named(value['schema'])}:</p>"
        f"<pre>{escape(json.dumps(value['schema'], indent=2))}</pre>"
        for media, value in operation.get("requestBody", {}).get("content", {}).items()
    )
    answers = "".join(
        f"<tr><td>{status}</td><td>{_ticks(value['description'])}{_shape(value)}</td></tr>"
        for status, value in operation["responses"].items()
    )
    return (
        f"<details><summary><b>{method.upper()}</b> <code>{escape(path)}</code> "
        f"<span>{escape(operation['summary'])}</span></summary>{need}{parameters}{body}"
        f"<table><tr><th>status<th>means</tr>{answers}</table></details>"
    )


def _schema(name: str, value: dict[str, Any]) -> str:
    text = escape(json.dumps(value, indent=2))
    return f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary><pre>{text}</pre></details>'


def _shape(answer: dict[str, Any]) -> str:
    for media in answer.get("content", {}).values():
        name = str(media["schema"].get("$ref", "")).rpartition("/")[2]
        if name and name != "Problem":
            return f', <a href="#{escape(name)}">{escape(name)}</a>'
    return ""


def _named(schema: dict[str, Any]) -> str:
    """Links to the shapes that a body's fields refer to."""
    bodies = schema.get("oneOf", [schema])
    fields = [field for body in bodies for field in body.get("properties", {}).values()]
    options = [item for field in fields for item in field.get("anyOf", ())]
    names = [str(item["$ref"]).rpartition("/")[2] for item in options if "$ref" in item]
    links = ", ".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in names)
    return f" with {links}" if links else ""


def _short(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    return str(schema.get("type", "any"))


def _ticks(text: str) -> str:
    """Codes in backticks become links to their pages."""
    parts = escape(text).split("`")
    return "".join(
        f'<a href="/errors/{part}"><code>{part}</code></a>' if index % 2 else part for index, part in enumerate(parts)
    )
