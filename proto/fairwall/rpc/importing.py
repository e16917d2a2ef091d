"""What a party cannot import ends its process with one line that says why.

This needs no library itself, so that it can say so of any.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator

from fairwall.errors import UserError


@contextlib.contextmanager
def importing(party: str) -> Iterator[None]:
    """Import in the body: what cannot be imported ends the party's process with one line on stderr and status 2."""
    try:
        yield
    except (ImportError, OSError, UserError) as error:
        why = str(error) if isinstance(error, UserError) else reason(error, party)
        print(f"{party}: {why}", file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None


def reason(error: ImportError | OSError, party: str) -> str:
    """Say in one line what could not be imported, and why.

    A library that cannot import a part of its own may raise an error full of advice; what went wrong is its cause.
    """
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    name = getattr(error, "name", None)
    what = f"cannot import {name}" if name else "cannot import its code"
    text = " ".join(str(cause).split())
    # A checkout's root is closed on purpose: what lies there was found before.
    others = [
        folder for folder in sys.path if not any(map(os.path.exists, (f"{folder}/{party}", f"{folder}/fairwall")))
    ]
    hidden = ", ".join(closed(others))
    return f"{what}: {text}" + (f" (the party may not read {hidden})" if hidden else "")


def closed(folders: Iterable[str]) -> list[str]:
    """Find the folders that this process may not list; one that is not there is not closed."""
    found = []
    for folder in folders:
        try:
            os.scandir(folder).close()
        except PermissionError:
            found.append(folder)
        except OSError:  # a zip file, or nothing
            continue
    return found
