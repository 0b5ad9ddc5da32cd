"""The tables of synchronous calls. Rows are appended, never changed: a hot path that updates nothing leaves nothing to
clean up behind it.

A call that has not ended has no row in `calls`; it stands as the last of its rows in `call_attempts` says. `record` is
JSON text of the value; what an operator may want to ask of many calls has a column of its own.
"""

from sqlalchemy import BigInteger, Column, DateTime, Index, Integer, LargeBinary, MetaData, Numeric, Table, Text, text

metadata = MetaData()

call_attempts = Table(
    "call_attempts",
    metadata,
    Column("call_id", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("attempt_id", Text, nullable=False),
    Column("supply", Text, nullable=False),
    Column("sent_at", DateTime(timezone=True), nullable=False),
    Column("overdue_at", DateTime(timezone=True), nullable=False),
    Column("round", Integer, nullable=False),
    Column("decided_at", DateTime(timezone=True), nullable=False),
    Column("selection", Text, nullable=False),
    Column("record", Text, nullable=False),  # the call as it stood when this try was sent
    Column("hold", Text, nullable=False, server_default=""),  # what paid for the call by then
    Index("call_attempts_by_time", "overdue_at", postgresql_using="brin", postgresql_with={"autosummarize": "on"}),
)
"""The intent of each try, durable before a byte of it leaves."""

calls = Table(
    "calls",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("code", Text, nullable=False),  # of the failure; empty = none
    Column("supply", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("cost", Numeric, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("finished_at", DateTime(timezone=True), nullable=False),
    Column("record", Text, nullable=False),
    Column("rounds", Text, nullable=False),  # those that no try came of
    Column("session", Text, nullable=False, server_default=""),  # empty = none, or a release that kept it in the record
    Column("hold", Text, nullable=False, server_default=""),  # what paid for it
    Index("calls_by_end", "finished_at", "id"),
    Index("calls_by_tenant", "tenant", "finished_at", "id"),
    Index("calls_by_session", "tenant", "session", "finished_at", "id", postgresql_where=text("session <> ''")),
)
"""Calls that have ended."""

call_answers = Table(
    "call_answers",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("answer", LargeBinary, nullable=False),
    Column("until", DateTime(timezone=True), nullable=False),
    Index("call_answers_by_time", "until"),
)
"""The response cache (SYN-10)."""
