"""The rules of the house that no other tool checks. Each is a pure function from a file to its breaches.

A breach is a sentence that names the place; no breach is an empty list. Each rule says why it exists, and its test
shows it a file that breaks it: a rule that cannot fail is not a rule.
"""

import ast
import gc
import re
import sys
from collections.abc import Iterator
from pathlib import PurePosixPath

BANNED_NAMES = frozenset({"utils", "util", "common", "helpers", "helper", "base", "core", "manager", "misc"})
FUNCTION_LINES = 50
MODULE_LINES = 400
DEED_LINES = range(5, 16)

HOME_PATH = re.compile(r"(?<![\w.])/(?:root|work|farm)/|(?<![\w.])/home/\w+/|/Users/\w+/")
REGISTRY = re.compile(
    r"https?://[^/\s\"']*(?:pypi|pythonhosted|npmjs|debian|artifactory|nexus|crates)[\w.-]*"
    r"|\b(?:extra-)?index-url\b|\bfind-links\b|_authToken",
    re.IGNORECASE,
)
RULE_ID = re.compile(
    r"\b(?:ATT|AUTH|CAP|CAT|CLIENT|COMP|CON|COST|DLQ|EDG|ERR|EVENT|GATE|HLT|HUMAN|IDEM|OAI|OPS|PRF|PRIO|RUN|SEL|SLO|SSE"
    r"|STALE|STEER|SYN|TIER|VER)-\d+[a-z]?\b"
)
SUPPRESSION = re.compile(
    r"#\s*(?:noqa\b(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?|type:\s*ignore(?:\[[\w,\s-]*\])?)(?P<reason>.*)$"
)
DOTTED = re.compile(r"(?:libs|services|cli)(?:\.\w+)+")
UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|X[X]X)\b")


def banned_name(path: str) -> list[str]:
    """Files rot at words that mean everything: no utils, helpers, core, manager, and no service.py."""
    parts = PurePosixPath(path).parts
    bad = [part for part in parts if PurePosixPath(part).stem in BANNED_NAMES]
    if parts[-1] == "service.py":
        bad.append("service.py")
    return [f"{path}: '{part}' says nothing about what is inside" for part in bad]


def parsed(source: str) -> ast.Module:
    """The module's tree. CPython 3.11 fails with a SystemError when a finalizer of the test session runs in between."""
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.enable()


def nodes(source: str, *words: str) -> Iterator[ast.AST]:
    """Every node of a module that has one of the words in it; of any other none, for a whole tree is slow to parse."""
    if any(word in source for word in words):
        yield from ast.walk(parsed(source))


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Every function of a module as (name, lines), decorators not counted."""
    for node in statements(parsed(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def statements(block: ast.AST) -> Iterator[ast.AST]:
    """What stands below a block, without the expressions in it: most nodes are those."""
    below = (node for node in ast.iter_child_nodes(block) if not isinstance(node, ast.expr))
    for node in below:
        yield node
        yield from statements(node)


def sizes(path: str, source: str) -> dict[str, int]:
    """What is larger than a reader holds in mind at once: {place: lines}."""
    lines = len(source.splitlines())
    large = {path: lines} if lines > MODULE_LINES else {}
    if path.endswith(".py") and lines > FUNCTION_LINES:
        for name, count in functions(source):
            if count > FUNCTION_LINES:
                large[f"{path}:{name}"] = max(count, large.get(f"{path}:{name}", 0))
    return large


def ratchet(large: dict[str, int], allowed: dict[str, int]) -> list[str]:
    """What is too large today may only shrink: new or grown is refused, and so is an allowance no longer needed."""
    grown = [
        f"{place}: {lines} lines" + (f", allowed {allowed[place]}" if place in allowed else "")
        for place, lines in large.items()
        if lines > allowed.get(place, 0)
    ]
    slack = [
        f"{place}: allowed {lines} lines, has {large.get(place, 'no more than the rule')}; tighten oversize.txt"
        for place, lines in allowed.items()
        if large.get(place, 0) < lines
    ]
    return grown + slack


def deed(path: str, source: str) -> list[str]:
    """Every package opens with its deed, so that a visitor knows whose house it is before reading code."""
    module = parsed(source)
    words = ast.get_docstring(module)
    if not words:
        return [f"{path}: a package opens with a docstring that says what it owns"]
    parts = PurePosixPath(path).parts
    if parts[0] != "services" or len(parts) != 3 or parts[1] == "studio":
        return []
    breaches = []
    if len(words.splitlines()) not in DEED_LINES:
        breaches.append(f"{path}: the deed of a house has {DEED_LINES.start} to {DEED_LINES.stop - 1} lines")
    if len(module.body) > 1:
        breaches.append(f"{path}: the deed of a house holds nothing but words")
    return breaches


def kernel_imports(path: str, source: str) -> list[str]:
    """The kernel stands on the standard library alone and knows no real clock: everything may import it."""
    found = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    foreign = {
        name
        for name in found
        if not name.startswith("libs.kernel") and name.split(".")[0] not in sys.stdlib_module_names - {"time", "random"}
    }
    return [f"{path}: the kernel may not import {name}" for name in sorted(foreign)]


def prose(markdown: str) -> Iterator[str]:
    """The lines of a document outside fenced code."""
    fence = ""
    for line in markdown.splitlines():
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip().startswith(fence):
            fence = ""
        elif not fence:
            yield line


def one_title(path: str, markdown: str) -> list[str]:
    """A document has one `# title`, and it opens the document: links and tables of contents lean on it."""
    titles = [line for line in prose(markdown) if line.startswith("# ")]
    if len(titles) != 1:
        return [f"{path}: has {len(titles)} titles, needs one"]
    first = next(line for line in prose(markdown) if line.strip())
    return [] if first == titles[0] else [f"{path}: opens with {first!r}, not with its title"]


def links(path: str, markdown: str) -> Iterator[str]:
    """Where the links of a document into this repository lead, relative to the root."""
    folder = PurePosixPath(path).parent
    for line in prose(markdown):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if not re.match(r"[a-z]+:|#|/", target):
                yield str(folder / target.split("#")[0])


def workplace(path: str, words: str) -> list[str]:
    """The text speaks of the project alone: a path of somebody's machine or a registry's host helps no reader."""
    breaches = []
    for number, line in enumerate(words.splitlines(), 1):
        for found in (HOME_PATH.search(line), REGISTRY.search(line)):
            if found:
                breaches.append(f"{path}:{number}: {found[0]!r} belongs to a workplace, not to the project")
    return breaches


def unexplained(path: str, source: str) -> list[str]:
    """A silenced tool needs a reason beside it, or nobody dares to unsilence it."""
    breaches = []
    explained = False  # by the line above: a remark, or a suppression of the same kind that has its reason
    for number, line in enumerate(source.splitlines(), 1):
        found = SUPPRESSION.search(line)
        if not found:
            explained = line.lstrip().startswith("#")
            continue
        explained = explained or bool(re.search(r"\w{3,}", found["reason"]))
        if not explained:
            breaches.append(f"{path}:{number}: a suppression without a reason")
    return breaches


def unfinished(path: str, source: str) -> list[str]:
    """What is not there is not promised: no stubs, no reminders, no skipped tests."""
    breaches = [
        f"{path}:{number}: a reminder instead of the work"
        for number, line in enumerate(source.splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    for node in nodes(source, "NotImplementedError", "skip", "xfail"):
        if isinstance(node, ast.Name) and node.id == "NotImplementedError":
            breaches.append(f"{path}:{node.lineno}: a stub")
        if isinstance(node, ast.Attribute) and node.attr in {"skip", "skipif", "xfail", "importorskip"}:
            breaches.append(f"{path}:{node.lineno}: a test that does not run")
    return breaches


def patched(path: str, source: str) -> list[str]:
    """Fakes come in through ports: a patched name tests the patch. And no test waits by the clock of the machine."""
    breaches = []
    for node in nodes(source, "mock", "monkeypatch", "sleep"):
        if isinstance(node, ast.arg) and node.arg in {"monkeypatch", "mocker"}:
            breaches.append(f"{path}:{node.lineno}: {node.arg}")
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, "module", "") or ""}
            if names & {"mock", "unittest.mock", "pytest_mock"}:
                breaches.append(f"{path}:{node.lineno}: mock")
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "time.sleep":
            breaches.append(f"{path}:{node.lineno}: time.sleep as synchronisation")
    return breaches


def claims(source: str) -> set[str]:
    """The rule ids named in the docstrings of the tests of a module."""
    found: set[str] = set()
    for node in statements(parsed(source)) if RULE_ID.search(source) else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            found.update(RULE_ID.findall(ast.get_docstring(node) or ""))
    return found


def rule_list(words: str) -> set[str]:
    """Read a list of rules, one family a line: `SEL 1..4 15a` is four rules and SEL-15a; `#` opens a remark."""
    found: set[str] = set()
    for line in words.splitlines():
        family, *numbers = line.split("#")[0].split() or [""]
        for number in numbers:
            first, _, last = number.partition("..")
            found.update(f"{family}-{n}" for n in (range(int(first), int(last) + 1) if last else [number]))
    return found


def imported(source: str) -> set[str]:
    """Every dotted name that a module may load: imports, and strings that are dotted names (`python -m x.y`)."""
    found: set[str] = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            dots = "." * node.level
            found.add(dots + node.module)
            found.update(f"{dots}{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update("." * node.level + alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED.fullmatch(node.value):
            found.add(node.value)
    return found


def absolute(path: str, name: str) -> str:
    """A relative import as seen from the module at `path`, made absolute."""
    level = len(name) - len(name.lstrip("."))
    package = PurePosixPath(path).parts[:-1]
    return ".".join((*package[: len(package) - level + 1], name[level:])) if level else name


def dead(sources: dict[str, str], entries: set[str]) -> list[str]:
    """A module that nothing loads misleads its readers. Entry points are loaded by people, tests do not count."""
    loaded = {absolute(path, name) for path, source in sources.items() for name in imported(source)}
    return sorted(
        f"{path}: nothing loads this module"
        for path in sources
        if not any(PurePosixPath(path).match(entry) for entry in entries)
        and path.removesuffix(".py").replace("/", ".") not in loaded
    )
