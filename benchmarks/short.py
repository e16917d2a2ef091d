"""What `--short` does to a benchmark: all of it runs, in seconds, so that its figures say nothing."""

from __future__ import annotations

import argparse
from typing import Any


def parsed(parser: argparse.ArgumentParser, **short: Any) -> argparse.Namespace:
    """Read the command line; with ``--short``, options are as little as ``short`` says."""
    parser.add_argument("--short", action="store_true", help="run through in seconds: the figures say nothing")
    asked = parser.parse_args()
    if asked.short:
        vars(asked).update(short)
    return asked
