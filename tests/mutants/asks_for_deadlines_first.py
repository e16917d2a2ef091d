"""Tells strangers what is wrong with their deadlines."""

import contextlib

from compliance.__main__ import main
from fairwall.rpc import server
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C715"

sound = server._Gate._admitted


@contextlib.contextmanager
def admitted(self, context, check):
    remaining = context.time_remaining()
    if remaining is None or remaining > 3630:
        raise Refusal(error_pb2.REASON_DEADLINE_MISSING)
    with sound(self, context, check) as meter:
        yield meter


server._Gate._admitted = admitted

if __name__ == "__main__":
    main()
