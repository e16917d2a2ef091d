"""Lets in parties that speak a later version of the protocol."""

from sim.conformance.reference_referee import main
from sim.games.referee import Referee

KILLED_BY = "R101"

sound = Referee.Join


def join(self, request, context):
    request.protocol_version = 2
    return sound(self, request, context)


Referee.Join = join

if __name__ == "__main__":
    main()
