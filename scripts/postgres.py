"""Starts a PostgreSQL server in a folder until Ctrl-C, for trying out a ledger in a database: ``make postgres``."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support import postgres_server


def main() -> None:
    """Lay the server out if it is new, start it, and say where it is."""
    folder = Path(sys.argv[1]).absolute()
    where = postgres_server.programs()
    if where is None:
        sys.exit("PostgreSQL is not installed: apt install postgresql")
    server = postgres_server.laid_out(where, folder)
    server.start()
    sys.stdout.write(f'ledger = "{server.url()}"\n')
    sys.stdout.flush()
    signal.sigwait({signal.SIGINT, signal.SIGTERM})
    server.stop(signal.SIGINT)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
