"""Tells with a refusal, where gRPC keeps details of its own, how many are disadvantaged."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C602"

sound = service.AuditService.Audit


class Telling:
    def __init__(self, context, size):
        self._context, self._size = context, size

    def __getattr__(self, name):
        return getattr(self._context, name)


def audit(self, request_iterator, context):
    case = next(iter(self._cases.values()))
    tell = context.set_trailing_metadata

    def also(pairs):
        tell((*pairs, ("grpc-status-details-bin", bytes([case.records.counts("sp")[0]]))))

    context.set_trailing_metadata = also
    return sound(self, request_iterator, context)


service.AuditService.Audit = audit

if __name__ == "__main__":
    main()
