"""External programs that replace our parties: the conditions for playing, and their first line of output."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Mapping
from typing import Any

from fairwall.errors import UserError
from fairwall.rpc.confine import LAYERS
from sim.scenarios.sweep import Sweep

_ADDRESS = re.compile(r"127\.0\.0\.1:[0-9]{1,5}")


class ProgramRefused(UserError):
    """A program that may not play, or cannot be started. Its text is one line that names the option."""


def check(sweep: Sweep, programs: Mapping[str, str]) -> None:
    """Raise `ProgramRefused` for programs that could recompute every draw, cannot start, or must be confined."""
    scenario = sweep.scenario.scenario
    for party, command in programs.items():
        if scenario.secret != "random":  # noqa: S105 - the name of a mode
            raise ProgramRefused(
                f'--{party}: only with --set scenario.secret=random: with "{scenario.secret}" a program that tries all '
                "seeds finds every draw of the run"
            )
        if scenario.require:
            raise ProgramRefused(
                f"--{party}: scenario.require demands {', '.join(scenario.require)}, and what confines another program "
                "only itself can say"
            )
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ProgramRefused(f"--{party}: {command!r}: {error}") from None
        if not words or shutil.which(words[0]) is None:
            raise ProgramRefused(f"--{party}: no command {words[0] if words else command!r}")


def said(line: str) -> tuple[str, list[dict[str, Any]]]:
    """Parse the first line of a ready program: its address ("" if none) and its layers of confinement.

    A layer has, as our parties' have, name, active and why_not. Raises ValueError with the fault.
    """
    try:
        values = json.loads(line)
    except ValueError:
        raise ValueError("is no JSON object") from None
    if not isinstance(values, dict) or values.keys() - {"address", "layers"}:
        raise ValueError("is to be a JSON object of address and layers")
    address, layers = values.get("address"), values.get("layers", [])
    if not isinstance(address, str) or (address and not _ADDRESS.fullmatch(address)):
        raise ValueError("is to have an address, as 127.0.0.1:PORT, or empty")
    if not isinstance(layers, list):
        raise ValueError("is to have a list of layers")
    return address, [_layer(layer) for layer in layers]


def _layer(values: Any) -> dict[str, Any]:
    if not isinstance(values, dict) or values.get("name") not in LAYERS or not isinstance(values.get("active"), bool):
        raise ValueError(f"is to have layers, each with a name among {', '.join(LAYERS)} and whether it is active")
    return {"name": values["name"], "active": values["active"], "why_not": str(values.get("why_not", ""))}
