"""Runs eight calls at a time, whoever makes them."""

import dataclasses
import threading

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C705"


def init(self, *args, sound=server._Gate.__init__, **kwargs):
    sound(self, *args, **kwargs)
    room = threading.BoundedSemaphore(server.CALLS_PER_CALLER)
    self._places = {caller: dataclasses.replace(place, room=room) for caller, place in self._places.items()}


server._Gate.__init__ = init

if __name__ == "__main__":
    main()
