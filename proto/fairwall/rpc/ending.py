"""End a program at once, with its status, without taking down the interpreter.

A thread of pyarrow or gRPC that asks for the interpreter while it is taken down is ended from within C++, which aborts
the process: SIGABRT instead of status 2, in about one of a hundred ends on a busy machine.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn


def run(program: Callable[[], object], *, waits: bool = True) -> NoReturn:
    """Run a program, and end the process as the interpreter would; without `waits` threads are not waited for."""
    status: object = 0
    try:
        program()
    except SystemExit as ended:
        status = ended.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    if isinstance(status, str):
        print(status, file=sys.stderr)  # noqa: T201
    if waits:
        threading._shutdown()  # type: ignore[attr-defined]
    if waits or status:
        atexit._run_exitfuncs()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the reader is gone, or there is no stream
            status = status or 1
    os._exit(status if isinstance(status, int) else int(status is not None))
