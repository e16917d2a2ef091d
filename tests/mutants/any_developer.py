"""Lets in every developer of the deployment, whether the policy names it or not."""

import threading

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C104"


class Room(dict):
    def __contains__(self, caller):
        return caller.party == "developer" or super().__contains__(caller)

    def __missing__(self, caller):
        self[caller] = threading.BoundedSemaphore(8)
        return self[caller]


class Meters(dict):
    def __missing__(self, caller):
        self[caller] = server.Meter(server.Quota())
        return self[caller]


def init(self, *args, sound=server._Gate.__init__, **kwargs):
    sound(self, *args, **kwargs)
    self._room, self._meters = Room(self._room), Meters(self._meters)


server._Gate.__init__ = init

if __name__ == "__main__":
    main()
