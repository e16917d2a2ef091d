"""Tells the caller the text of the error instead of a reason."""

import grpc

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C605"


def abort(context, refusal):
    context.abort(grpc.StatusCode.UNKNOWN, f"Refusal: {refusal.reason} in service.py")


server.abort = abort

if __name__ == "__main__":
    main()
