"""Documents: one title each, links that lead somewhere, no words of a workplace."""

from pathlib import PurePosixPath

import pytest

from tests.tidy import rules, tree


def documents() -> list[str]:
    """Every Markdown file."""
    return [path for path in tree.files() if path.endswith(".md")]


def test_two_titles_and_a_late_title_are_refused():
    """The rule fails on either; a `#` inside a code block is no title."""
    assert rules.one_title("a.md", "# One\n\n# Two\n")
    assert rules.one_title("a.md", "Words first.\n\n# One\n")
    assert rules.one_title("a.md", "# One\n\n```sh\n# a remark\n```\n") == []


def test_every_document_has_one_title():
    """One `# title` a document, at its top."""
    assert [breach for path in documents() for breach in rules.one_title(path, tree.text(path) or "")] == []


def test_links_between_documents_lead_somewhere():
    """A link into the repository names a file or folder that is there."""
    dead = [
        f"{path}: {target}"
        for path in documents()
        for target in rules.links(path, tree.text(path) or "")
        if not (tree.ROOT / target).exists()
    ]
    assert dead == []


HOST = "py{}.example.com/simple".format("pi")


@pytest.mark.parametrize("words", ["see /{}/notes".format("root"), f"https://{HOST}", "--{}-url x".format("index")])
def test_a_path_or_host_of_a_workplace_is_refused(words: str):
    """The rule fails on a home folder, and on a registry."""
    assert rules.workplace("a.md", words)


def test_no_text_speaks_of_a_workplace():
    """Registry hosts stand in uv.lock alone, and paths of a machine nowhere."""
    breaches = []
    for path in tree.files():
        if not tree.generated(path) and PurePosixPath(path) != PurePosixPath("tests/tidy/rules.py"):
            breaches += rules.workplace(path, tree.text(path) or "")
    assert breaches == []


def test_the_lock_names_public_hosts_only():
    """A lock made against a private mirror would not install anywhere else."""
    hosts = {line.split("//")[1].split("/")[0] for line in (tree.text("uv.lock") or "").split('"') if "://" in line}
    assert len(hosts) == 2
    assert all(host.endswith((".org", ".pythonhosted.org")) for host in hosts)
