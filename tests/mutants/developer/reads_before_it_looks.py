"""Looks at who calls once something has come."""

import itertools

from fairwall.rpc import server
from sim.conformance.reference_developer import main

KILLED_BY = "D111"

sound = server._Gate._unary


def unary(self, handler, method):
    call = sound(self, handler, method)

    def late(arriving, context):
        first = list(itertools.islice(arriving, 1))
        return call(itertools.chain(first, arriving), context)

    return late


server._Gate._unary = unary

if __name__ == "__main__":
    main()
