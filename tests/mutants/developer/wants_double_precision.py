"""Takes no features but of double precision."""

from fairwall.rpc import uploads
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.conformance.reference_developer import main

KILLED_BY = "D109"

sound = uploads.array_after


def after(header, *rest, **named):
    if header.element_type != 1:
        raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
    return sound(header, *rest, **named)


uploads.array_after = after

if __name__ == "__main__":
    main()
