"""Looks at who calls once something has come."""

import itertools

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C711"

sound = server._Gate._unary


def unary(self, handler, method):
    call = sound(self, handler, method)

    def late(arriving, context):
        first = list(itertools.islice(arriving, 1))
        return call(itertools.chain(first, arriving), context)

    return late


server._Gate._unary = unary
server._Gate._prompt = lambda _, arriving: arriving

if __name__ == "__main__":
    main()
