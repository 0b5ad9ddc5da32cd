"""The time that every process of an installation goes by."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# Time is a function so that a drill may set another in its place.
SERVER_TIME = """
CREATE FUNCTION server_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()'
"""

# What would be told now, to whoever only reads. It is called from other schemas, so every name is whole.
PRESENT_TIME = """
CREATE FUNCTION present_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS $function$
  SELECT CASE WHEN p.now < p.reached THEN p.reached ELSE p.now - least(p.ahead, (p.now - p.reached) / 2) END
  FROM (SELECT reached, ahead, host.server_time() + ahead AS now FROM host.told_time) p
$function$
"""

# `reached` was told last, `ahead` is how far that is ahead of the server's clock. It never goes back: where the clock
# did, time goes on from what was told, at half the pace until the clock has caught up.
TELL_TIME = """
CREATE FUNCTION tell_time() RETURNS timestamptz LANGUAGE plpgsql AS $function$
DECLARE
  known told_time;
  present timestamptz;
  gained interval;
BEGIN
  SELECT * INTO STRICT known FROM told_time FOR UPDATE;
  present := server_time() + known.ahead;
  IF present < known.reached THEN
    known.ahead := known.ahead + (known.reached - present);
  ELSE
    gained := least(known.ahead, (present - known.reached) / 2);
    known.ahead := known.ahead - gained;
    known.reached := present - gained;
  END IF;
  UPDATE told_time SET reached = known.reached, ahead = known.ahead;
  RETURN known.reached;
END
$function$
"""


def upgrade() -> None:
    """Make the table and its functions; it begins at the server's clock."""
    op.create_table(
        "told_time",
        sa.Column("one", sa.Boolean, primary_key=True),
        sa.Column("reached", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ahead", sa.Interval, nullable=False),
    )
    op.execute(SERVER_TIME)
    op.execute(TELL_TIME)
    op.execute(PRESENT_TIME)
    op.execute("INSERT INTO told_time (one, reached, ahead) VALUES (true, server_time(), interval '0')")
