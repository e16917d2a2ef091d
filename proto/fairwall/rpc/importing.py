"""End a party's process with one line if it cannot import its code. This module itself needs no library."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator

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
