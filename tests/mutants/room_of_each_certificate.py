"""Gives each certificate room of its own."""

import threading
from collections import defaultdict

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C716"

sound = server._Gate._admitted
rooms = defaultdict(lambda: threading.BoundedSemaphore(server.CALLS_PER_CALLER))


def admitted(self, context, method):
    shown = context.auth_context()["x509_pem_cert"][0]
    other = server._Gate.__new__(server._Gate)
    other.__dict__.update(self.__dict__, _room={key: rooms[key, shown] for key in self._room})
    return sound(other, context, method)


server._Gate._admitted = admitted

if __name__ == "__main__":
    main()
