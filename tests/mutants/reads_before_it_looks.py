"""Reads a lone message before it looks at who sends it."""

import grpc

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C710"

sound = server._Gate.intercept_service


def intercept(self, continuation, handler_call_details):
    handler, inner = continuation(handler_call_details), sound(self, continuation, handler_call_details)
    if handler is None or handler.request_streaming or handler.response_streaming:
        return inner
    call = inner.stream_unary
    return grpc.unary_unary_rpc_method_handler(lambda data, context: call(iter([data]), context))


server._Gate.intercept_service = intercept
server._Gate._prompt = lambda _, arriving: arriving

if __name__ == "__main__":
    main()
