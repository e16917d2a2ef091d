"""Remembers by request id what it has answered itself, and charges what another replica has answered once more."""

import sys

from compliance.__main__ import main
from compliance.ledger import postgres
from compliance.ledger.entries import COLUMNS, LedgerEntry, entry_of

replica = sys.argv[sys.argv.index("--listen") + 1]
append_alone = postgres.PostgresSession.append


def append(self, chain, record):
    append_alone(self, chain, record)
    if isinstance(record, LedgerEntry):
        self._db.execute("INSERT INTO fairwall.written VALUES (%s, %s, %s)", (replica, chain, record.sequence))


def find(self, developer, request_id):
    own = f"SELECT {COLUMNS['entries']}, line FROM fairwall.entries NATURAL JOIN fairwall.written"  # noqa: S608
    where = " WHERE replica = %s AND developer = %s AND request_id = %s"
    row = self._db.execute(own + where, (replica, developer, request_id)).fetchone()
    if row is None:
        return None
    entry = entry_of(row[:-1])
    (before,) = self._db.execute(postgres._CHAIN, {"line": row[-1], "n": entry.sequence - 1}).fetchone()
    return entry, before


postgres._SCHEMA = (
    *(statement for statement in postgres._SCHEMA if not statement.startswith("CREATE UNIQUE INDEX requests")),
    "CREATE TABLE fairwall.written (replica text, line text, sequence bigint, PRIMARY KEY (replica, line, sequence))",
)
postgres.PostgresSession.append, postgres.PostgresSession.find = append, find

if __name__ == "__main__":
    main()
