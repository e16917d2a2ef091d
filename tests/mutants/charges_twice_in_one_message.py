"""Writes what was charged twice into a message: first how many are disadvantaged, then the charge."""

import struct

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C605"

sound = server._encoder


def encoder(handler):
    encode = sound(handler)
    return lambda message: struct.pack("<Bd", 0x11, 27.0) + encode(message)


server._encoder = encoder

if __name__ == "__main__":
    main()
