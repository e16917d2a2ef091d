"""Serves a deployment: what ``python -m compliance --policy FILE`` does by hand."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn


def compliance(policy: Path) -> NoReturn:
    """Become the compliance process of a deployment.

    Nothing is left in between: Ctrl-C and the exit status are that process's own. It prints its address as a party of
    a game does.
    """
    command = [sys.executable, "-I", "-m", "compliance", "--policy", str(policy.resolve())]
    os.execv(sys.executable, command)  # noqa: S606 - our own interpreter and packages
