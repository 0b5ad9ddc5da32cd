"""The document of a large Run follows its events.

A Run is the fold of its events, its document a copy for reading (decision 34). To write the copy with every commit is
cheap while it is small; of a large Run it would cost many times the commit, whose events tell of a node or two.

Laws of this file:
- the columns of a row (state, revision, last sequence) are written with every commit, so every list and guard is exact;
- a document that is behind is so by whole events: `last_sequence` in it says up to which one it tells, and whoever
  reads it folds in the rest;
- it is never behind by more than `MOST_BEHIND` events, and not at all once the Run is paused or has ended.
"""

from collections.abc import Sequence

from services.runs.domain.run import RESTING_STATES, Draft, Run

SMALL = 50
"""Nodes: up to so many a document is written with every commit."""
MOST_BEHIND = 500


def written_whole(run: Run, before: int, drafts: Sequence[Draft]) -> bool:
    """Whether the commit of these events, the first one after sequence `before`, writes the document too. What no event
    tells is written whole."""
    if len(run.nodes) <= SMALL or run.state in RESTING_STATES or not drafts:
        return True
    return run.last_sequence // MOST_BEHIND != before // MOST_BEHIND
