"""A process that owns an embedded PostgreSQL until it is killed. Prints one JSON line when the server is ready.

python owner.py HOME
"""

import asyncio
import json
import sys
from pathlib import Path

from libs.host.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError


async def main(home: Path) -> int:
    """Start, tell, wait. Exit code 1 with the error on stderr if the server cannot be started."""
    try:
        async with EmbeddedPostgres(home, durable=False) as server:
            sys.stdout.write(json.dumps({"pid": server.pid, "url": server.url}) + "\n")
            sys.stdout.flush()
            await asyncio.Event().wait()
    except EmbeddedPostgresError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]))))
