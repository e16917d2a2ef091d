"""Counts audits under way, and no other calls."""

import dataclasses
import threading

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C712"

sound = server._Gate._admitted


def admitted(self, context, check):
    if context._rpc_event.call_details.method.endswith(b"/Audit"):
        return sound(self, context, check)
    other = server._Gate.__new__(server._Gate)
    room = threading.BoundedSemaphore(100)
    places = {key: dataclasses.replace(place, room=room) for key, place in self._places.items()}
    other.__dict__.update(self.__dict__, _places=places)
    return sound(other, context, check)


server._Gate._admitted = admitted

if __name__ == "__main__":
    main()
