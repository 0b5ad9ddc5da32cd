"""Names of files and folders."""

import pytest

from tests.tidy import rules, tree


@pytest.mark.parametrize("path", ["libs/utils/x.py", "services/runs/helpers.py", "services/runs/service.py"])
def test_a_name_that_means_everything_is_refused(path: str):
    """The rule fails on a path that breaks it."""
    assert rules.banned_name(path)


def test_no_file_or_folder_has_a_name_that_means_everything():
    """Every path is named for what it holds. The contract's common/v1 is the one exception of the house."""
    house = "protos/pointsman/common/"
    ours = (path for path in tree.files() if not tree.generated(path) and not path.startswith(house))
    assert [breach for path in ours for breach in rules.banned_name(path)] == []
