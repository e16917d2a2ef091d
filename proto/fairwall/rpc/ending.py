"""How a program ends: at once, with its status.

Threads of pyarrow and of gRPC go on while the interpreter is taken down. One that asks for it then is ended from within
C++, which aborts the process: a clear line, and then SIGABRT instead of status 2, in about one of a hundred on a busy
machine. So what would be done at the end is done here, and nothing is taken down.
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
    """Run a program, and end the process as the interpreter would; not `waits` for threads, where nobody needs them."""
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
        except (OSError, ValueError, AttributeError):  # whoever read it is gone, or there is none
            status = status or 1
    os._exit(status if isinstance(status, int) else int(status is not None))
