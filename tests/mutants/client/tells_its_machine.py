"""Tells the service its machine's name."""

import socket

import grpc

from fairwall.rpc import channel
from sim.conformance.reference_client import main

KILLED_BY = "K108"

sound = channel.connect


class Telling(grpc.UnaryUnaryClientInterceptor, grpc.StreamUnaryClientInterceptor):
    def intercept_unary_unary(self, continuation, client_call_details, request):
        told = (*(client_call_details.metadata or ()), ("x-client", f"audit on {socket.gethostname()}"))
        return continuation(client_call_details._replace(metadata=told), request)

    def intercept_stream_unary(self, continuation, client_call_details, request_iterator):
        return self.intercept_unary_unary(continuation, client_call_details, request_iterator)


channel.connect = lambda *rest, **named: grpc.intercept_channel(sound(*rest, **named), Telling())

if __name__ == "__main__":
    main()
