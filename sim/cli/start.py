"""The program ``fairwall``. It imports what the command needs, and reports what is not installed."""

import sys
from typing import NoReturn

from fairwall.rpc import kernels, program

_OURS = frozenset({"fairwall", "sim", "compliance", "developer", "adversary"})


def main() -> NoReturn:
    """Run the command line, and end its process."""
    program.run(_main)


def _main() -> None:
    """Run the command line; status 2 where a package is missing that an installation without extras leaves out."""
    kernels.fix()  # the referee computes too
    try:
        from sim.cli import main as command

        command.main()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in _OURS:
            raise
        text = f"fairwall: needs {error.name}, which is not installed: pip install 'fairwall[games]'"
        print(text, file=sys.stderr)  # noqa: T201
        sys.exit(2)
