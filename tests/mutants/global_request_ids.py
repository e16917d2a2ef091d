"""Takes one developer's request id for another's."""

from compliance.__main__ import main
from compliance.ledger import Ledger
from compliance.ledger.entries import COLUMNS, record_of
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C114"


def find(self, held, request):
    select = f"SELECT {COLUMNS['entries']} FROM entries WHERE request_id = ?"  # noqa: S608
    row = self._store.db.execute(select, (request.request_id,)).fetchone()
    if row is None:
        return None
    entry = record_of("entries", row)
    if entry.request.digest != request.digest:
        raise Refusal(error_pb2.REASON_REQUEST_ID_REUSED)
    return entry


Ledger._find = find

if __name__ == "__main__":
    main()
