"""Counts audits under way, and no other calls."""

import threading

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C712"

sound = server._Gate._admitted


def admitted(self, context, method):
    if method.endswith("/Audit"):
        return sound(self, context, method)
    other = server._Gate.__new__(server._Gate)
    other.__dict__.update(self.__dict__, _room={key: threading.BoundedSemaphore(100) for key in self._room})
    return sound(other, context, method)


server._Gate._admitted = admitted

if __name__ == "__main__":
    main()
