"""Speaks plain text where TLS does not come about."""

import grpc

from fairwall.rpc import channel
from sim.conformance.reference_client import main

KILLED_BY = "K112"

sound = channel.connect


def connect(address, *rest, **named):
    secure = sound(address, *rest, **named)
    try:
        grpc.channel_ready_future(secure).result(3)
    except grpc.FutureTimeoutError:
        return grpc.insecure_channel(address)
    return secure


channel.connect = connect

if __name__ == "__main__":
    main()
