"""Start an interpreter where the kernel has a system call no more, or says so."""

from __future__ import annotations

import errno

_SCRIPT = """
import ctypes, os, struct, sys
# A filter on system calls: one of them, perhaps by its first argument, fails; every other one is allowed.
refuse, allow = (6, 0, 0, 0x50000 | {error}), (6, 0, 0, 0x7FFF0000)
steps = [(0x20, 0, 0, 0), (0x15, 0, {skipped}, {number}), *{argument}, refuse, allow]
program = b"".join(struct.pack("HBBI", *step) for step in steps)
buffer = ctypes.create_string_buffer(program)
filter_ = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(buffer))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, filter_, 0, 0) == 0
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def without(number: int, error: int = errno.ENOSYS, argument: int | None = None) -> str:
    """Write the script that runs an interpreter with its own arguments, where a call fails.

    Parameters
    ----------
    number : int
        The call's.
    error : int
        How it fails; 0: it does nothing, and says that it did.
    argument : int, optional
        Only with this first argument.
    """
    looked_at = [] if argument is None else [(0x20, 0, 0, 16), (0x15, 0, 1, argument)]
    return _SCRIPT.format(error=error, number=number, argument=looked_at, skipped=len(looked_at) + 1)
