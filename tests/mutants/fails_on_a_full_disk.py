"""Takes a full disk for a fault of its own."""

from contextlib import contextmanager

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.ledger.store import LedgerUnavailable
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C730"


@contextmanager
def explained(_):
    try:
        yield
    except LedgerUnavailable:
        raise Refusal(error_pb2.REASON_INTERNAL) from None


service.explained = explained

if __name__ == "__main__":
    main()
