"""Gives the room of a call that broke off back twice."""

import contextlib
import dataclasses
import threading

import grpc

from compliance.__main__ import main
from fairwall.rpc import server
from fairwall.rpc.identity import identify

KILLED_BY = "C721"

sound, init = server._Gate._admitted, server._Gate.__init__


def begin(self, *args, **kwargs):
    init(self, *args, **kwargs)
    self._places = {
        caller: dataclasses.replace(place, room=threading.Semaphore(server.CALLS_PER_CALLER))
        for caller, place in self._places.items()
    }


@contextlib.contextmanager
def admitted(self, context, check):
    try:
        with sound(self, context, check) as meter:
            yield meter
    except grpc.RpcError:
        self._places[identify(context)].room.release()
        raise


server._Gate.__init__, server._Gate._admitted = begin, admitted

if __name__ == "__main__":
    main()
