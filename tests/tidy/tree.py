"""The files of the repository as the tidy rules see them: what git tracks or would track, as text."""

import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PRODUCT = ("libs", "services", "cli")


@functools.cache
def files() -> tuple[str, ...]:
    """Every path of the tree that exists and is not ignored, relative to the root, sorted."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(sorted(name for name in set(listed.split("\0")) if name and (ROOT / name).is_file()))


def generated(path: str) -> bool:
    """Whether a tool wrote the file; such files answer to their tool."""
    return path.startswith("libs/gen/") or path == "uv.lock"


def python(*roots: str) -> Iterator[str]:
    """Python files written by hand, under the given top folders or anywhere."""
    for path in files():
        if path.endswith(".py") and not generated(path) and (not roots or path.split("/")[0] in roots):
            yield path


def text(path: str) -> str | None:
    """The file as text, or None if it is not text."""
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
