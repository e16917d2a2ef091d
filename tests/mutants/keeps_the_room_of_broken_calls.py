"""Never frees the place of a call that broke off."""

import threading

import grpc

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C707"

sound = service._receive


def receive(header, metric, requests, case):
    try:
        return sound(header, metric, requests, case)
    except grpc.RpcError:
        threading.Event().wait(60)
        raise


service._receive = receive

if __name__ == "__main__":
    main()
