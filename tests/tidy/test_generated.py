"""Generated code is what the protos say."""

import subprocess
import sys

from tests.tidy import tree


def test_generated_code_is_fresh():
    """`make gen` writes libs/gen byte for byte as it is committed, so nobody edits it and nobody forgets it."""
    done = subprocess.run([sys.executable, "tools/gen.py", "--check"], cwd=tree.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
