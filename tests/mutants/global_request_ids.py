"""Takes one developer's request id for another's."""

from compliance.__main__ import main
from compliance.ledger import Ledger, file
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C114"


def find(self, request):
    row = self._db.execute(file._ENTRIES + " WHERE request_id = ?", (request.request_id,)).fetchone()
    if row is None:
        return None
    entry = file._entry(row)
    if entry.request.digest != request.digest:
        raise Refusal(error_pb2.REASON_REQUEST_ID_REUSED)
    return entry


Ledger._find = find

if __name__ == "__main__":
    main()
