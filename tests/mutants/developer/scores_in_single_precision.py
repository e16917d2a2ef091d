"""Scores features of single precision in single precision."""

import numpy as np

from developer import service
from fairwall.rpc import arrays
from sim.conformance.reference_developer import main

KILLED_BY = "D109"

sound, message = service._receive, arrays.to_message
kinds = []


def receive(header, *rest):
    kinds.append(header.element_type)
    return sound(header, *rest)


service._receive = receive
arrays.to_message = lambda array: message(array.astype(np.float32).astype(array.dtype) if kinds[-1] == 2 else array)

if __name__ == "__main__":
    main()
