"""The table of faults of one adapter: which of the provider's codes means which of ours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from re import IGNORECASE, search

from libs.faults.registry import CODES


@dataclass(frozen=True, slots=True)
class Row:
    """One line: a provider's code and the code of our registry that it means.

    `theirs` is exact, or a prefix when it ends in `*`. `says` is a pattern that the message must contain (any when
    empty); `status` the HTTP status (any when 0). Earlier lines win.
    """

    theirs: str
    ours: str
    says: str = ""
    status: int = 0

    def matches(self, theirs: str, message: str, status: int) -> bool:
        """Whether the line speaks about this reply."""
        if self.theirs.endswith("*"):
            if not theirs.startswith(self.theirs[:-1]):
                return False
        elif self.theirs != theirs:
            return False
        if self.status and self.status != status:
            return False
        return not self.says or search(self.says, message, IGNORECASE) is not None


@dataclass(frozen=True)
class FaultTable:
    """All lines of one adapter. `headers` are the reply headers that carry a code of the provider.

    `errors_of_polls_judge` says that an HTTP error of a poll may be the verdict on the job (content, request), because
    the provider answers a poll with the result itself."""

    provider: str
    rows: tuple[Row, ...] = ()
    headers: tuple[str, ...] = ()
    errors_of_polls_judge: bool = False

    def __post_init__(self) -> None:
        unknown = sorted({row.ours for row in self.rows} - CODES.keys())
        if unknown:
            raise ValueError(f"{self.provider}: the registry has no {', '.join(unknown)}")

    @cached_property
    def _sharing(self) -> Mapping[str, tuple[Row, ...]]:
        exact: dict[str, list[Row]] = {}
        for row in self.rows:
            exact.setdefault(row.theirs, []).append(row)
        return {theirs: tuple(rows) for theirs, rows in exact.items()}

    def lookup(self, theirs: str, message: str, status: int) -> str:
        """Our code for a provider's code, "" when the table is silent."""
        for row in self._candidates(theirs):
            if row.matches(theirs, message, status):
                return row.ours
        return ""

    def _candidates(self, theirs: str) -> Iterable[Row]:
        yield from self._sharing.get(theirs, ())
        yield from (row for row in self.rows if row.theirs.endswith("*"))
