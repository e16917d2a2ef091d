"""The compliance process: ``python -m compliance --config FILE`` in a game, ``--policy FILE`` in a deployment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fairwall.rpc import handshakes, kernels
from fairwall.rpc.importing import importing

# What libraries read when they are imported. One thread also means that none runs before the process is confined.
kernels.fix()
if any(argument.startswith("--policy") for argument in sys.argv) and "GRPC_TRACE" not in os.environ:
    os.environ.update(handshakes.ENVIRONMENT)

with importing("compliance"):
    from compliance.deployment import serve as deployment
    from compliance.games import play
    from fairwall.rpc import process


def main() -> None:
    """Play or serve, as the command line says."""
    asked = process.arguments("compliance", deployable=True)
    if asked.policy is None:
        play.play(*process.start("compliance", asked.config))
    else:
        with handshakes.reported():
            deployment.serve(Path(asked.policy), new_ledger=asked.new_ledger, even_if_worthless=asked.even_if_worthless)


if __name__ == "__main__":
    main()
