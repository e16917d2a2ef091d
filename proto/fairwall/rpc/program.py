"""Start and end of a process's program, each with one line at most on stderr. This module itself needs no library."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

from fairwall.errors import UserError


@contextlib.contextmanager
def importing(party: str) -> Iterator[None]:
    """Import in the body: a failed import ends the party's process with one line on stderr and status 2."""
    try:
        yield
    except (ImportError, OSError, UserError) as error:
        why = str(error) if isinstance(error, UserError) else reason(error, party)
        print(f"{party}: {why}", file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None


def reason(error: ImportError | OSError, party: str) -> str:
    """Return one line with the failed import and its first cause: later errors may be full of advice."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    name = getattr(error, "name", None)
    what = f"cannot import {name}" if name else "cannot import its code"
    text = " ".join(str(cause).split())
    # A checkout's root is closed on purpose: its packages were found before.
    others = [
        folder for folder in sys.path if not any(map(os.path.exists, (f"{folder}/{party}", f"{folder}/fairwall")))
    ]
    hidden = ", ".join(closed(others))
    return f"{what}: {text}" + (f" (the party may not read {hidden})" if hidden else "")


def closed(folders: Iterable[str]) -> list[str]:
    """Return the folders that this process may not list; a missing one is not closed."""
    found = []
    for folder in folders:
        try:
            os.scandir(folder).close()
        except PermissionError:
            found.append(folder)
        except OSError:  # a zip file, or nothing
            continue
    return found


def run(program: Callable[[], object], *, waits: bool = True) -> NoReturn:
    """Run a program, and end the process at once, with its status; without `waits` threads are not waited for.

    The interpreter is not taken down: a thread of pyarrow or gRPC that asks for it meanwhile is ended from within C++,
    which aborts the process: SIGABRT instead of status 2, in about one of a hundred ends on a busy machine.
    """
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
