"""Uses up the id of a call that was cancelled."""

import grpc

from compliance.__main__ import main
from compliance.answers import audit_service as service
from fairwall.rpc import uploads
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C717"

sound = service.AuditService.Audit
used = {}


def audit(self, request_iterator, context):
    header = uploads.header_of(request_iterator)

    def again():
        from fairwall.compliance.v1.audit_service_pb2 import AuditRequest

        yield AuditRequest(header=header)
        yield from request_iterator

    if header.request_id in used:
        raise Refusal(error_pb2.REASON_REQUEST_ID_REUSED)
    try:
        return sound(self, again(), context)
    except grpc.RpcError:
        used[header.request_id] = 1
        raise


service.AuditService.Audit = audit

if __name__ == "__main__":
    main()
