"""Packages open with a deed; the kernel stands on the standard library."""

from pathlib import PurePosixPath

from tests.tidy import rules, tree


def test_a_package_without_words_is_refused():
    """The rule fails on an empty package, and on a house whose deed is short or holds code."""
    assert rules.deed("libs/faults/__init__.py", "")
    assert rules.deed("services/runs/__init__.py", '"""Runs."""\n')
    assert rules.deed("services/runs/__init__.py", '"""Runs.\n\n1\n2\n3\n4\n"""\nimport os\n')


def test_every_package_opens_with_a_deed():
    """Every folder of product code is a package, and its first words say what it owns."""
    breaches = []
    for folder in sorted({str(PurePosixPath(path).parent) for path in tree.python(*tree.PRODUCT)}):
        if folder.endswith("/versions"):  # Alembic reads migrations as files, not as a package
            continue
        words = tree.text(f"{folder}/__init__.py") if f"{folder}/__init__.py" in tree.files() else ""
        breaches += rules.deed(f"{folder}/__init__.py", words or "")
    assert breaches == []


def test_a_foreign_import_in_the_kernel_is_refused():
    """The rule fails on a third-party package and on a real clock."""
    assert rules.kernel_imports("libs/kernel/x.py", "import msgspec\n")
    assert rules.kernel_imports("libs/kernel/x.py", "from time import monotonic\n")


def test_the_kernel_imports_only_the_standard_library():
    """Everything may import the kernel because the kernel imports nothing, and it knows no real clock or chance."""
    kernel = (path for path in tree.python("libs") if path.startswith("libs/kernel/"))
    assert [breach for path in kernel for breach in rules.kernel_imports(path, tree.text(path) or "")] == []
