"""Remembers the id of a request that it refused."""

from itertools import chain

from compliance.__main__ import main
from compliance.answers import audit_service as service
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C219"

sound = service.AuditService.Audit
used = {}


def audit(self, request_iterator, context):
    first = next(request_iterator, None)
    key = first.header.request_id if first is not None else ""
    if used.get(key):
        raise Refusal(error_pb2.REASON_REQUEST_ID_REUSED)
    try:
        return sound(self, chain([first] if first is not None else [], request_iterator), context)
    except Refusal:
        used[key] = True
        raise


service.AuditService.Audit = audit

if __name__ == "__main__":
    main()
