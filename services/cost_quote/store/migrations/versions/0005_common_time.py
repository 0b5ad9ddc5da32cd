"""Holds go by the time that all processes go by, which does not go back with the server's clock."""

from alembic import op

revision = "0005"
down_revision = "0004"

# Where no process of ours has told a time, as over a store alone, it is the server's.
SERVER_TIME = """
CREATE OR REPLACE FUNCTION server_time() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $function$
BEGIN
  IF to_regprocedure('host.present_time()') IS NULL THEN
    RETURN clock_timestamp();
  END IF;
  RETURN host.present_time();
END
$function$
"""


def upgrade() -> None:
    """Replace the function."""
    op.execute(SERVER_TIME)
