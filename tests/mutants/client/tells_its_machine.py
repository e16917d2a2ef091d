"""Tells the service its machine's name."""

import socket

import grpc

from fairwall.rpc import channel
from sim.conformance.reference_client import main

KILLED_BY = "K108"

sound = channel.connect


class Telling(grpc.UnaryUnaryClientInterceptor, grpc.StreamUnaryClientInterceptor):
    def intercept_unary_unary(self, go, details, request):
        told = (*(details.metadata or ()), ("x-client", f"audit on {socket.gethostname()}"))
        return go(details._replace(metadata=told), request)

    intercept_stream_unary = intercept_unary_unary


channel.connect = lambda *rest: grpc.intercept_channel(sound(*rest), Telling())

if __name__ == "__main__":
    main()
