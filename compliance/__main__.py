"""The compliance process: ``python -m compliance --config FILE`` in a game, ``--policy FILE`` in a deployment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fairwall.rpc import handshakes, kernels
from fairwall.rpc.program import importing

# What libraries read when they are imported. One thread also means that none runs before the process is confined.
kernels.fix()
if any(argument.startswith("--policy") for argument in sys.argv) and "GRPC_TRACE" not in os.environ:
    os.environ.update(handshakes.ENVIRONMENT)

with importing("compliance"):
    from compliance.games.play import play
    from fairwall.rpc import process, program


def main() -> None:
    """Play or serve, by the command line's arguments."""
    asked = process.arguments("compliance", deployable=True)
    if asked.policy is None:
        play(*process.start("compliance", asked.config))
        return
    with importing("compliance"):
        from compliance.deployment.serve import serve  # no game waits for the library that validates policies

    def served() -> None:
        with handshakes.reported():
            serve(
                Path(asked.policy),
                listen=asked.listen,
                new_ledger=asked.new_ledger,
                even_if_worthless=asked.even_if_worthless,
                even_if_revealing=asked.even_if_revealing,
            )

    # The interpreter would wait for whatever is still found out about what answers are worth: for seconds, or minutes.
    program.run(served, waits=False)


if __name__ == "__main__":
    main()
