"""How much slower a service answers that has committed: two services of one policy, asked in turn.

    python benchmarks/committed.py [--answers 400] [--mechanism counts]

Each is a process of its own, asked about five models of 1,000 people. A ratio of medians, as the client waits.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from bench_deployment import lay_out, serving
from short import parsed

from fairwall import AuditClient

PEOPLE, MODELS, WARM = 1000, 5, 10


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--answers", type=int, default=400, help="of each service")
    parser.add_argument("--mechanism", default="counts")
    asked = parsed(parser, answers=5)
    rng, seconds = np.random.default_rng(0), {True: list[float](), False: list[float]()}
    with tempfile.TemporaryDirectory() as place, ExitStack() as open_until_the_end:
        clients = {}
        for committed in (False, True):
            folder = Path(place) / str(committed)
            folder.mkdir()
            lay_out(folder, PEOPLE, asked.mechanism, MODELS, {"alice": ""})
            if committed:
                policy = folder / "policy.toml"
                policy.write_text(policy.read_text().replace("[audit]\n", "[audit]\ncommitted = true\n"))
            address = open_until_the_end.enter_context(serving(folder))
            client = AuditClient(address, folder / "certificates" / "developer-alice")
            clients[committed] = open_until_the_end.enter_context(client)
        for number in range(asked.answers + WARM):
            predictions = rng.random((MODELS, PEOPLE)) < 0.5
            for committed in (False, True) if number % 2 else (True, False):
                began = time.perf_counter()
                clients[committed].ask(predictions, "sp", 0.01)
                if number >= WARM:
                    seconds[committed].append(time.perf_counter() - began)
    plain, bound = (statistics.median(seconds[committed]) for committed in (False, True))
    print(
        f"an answer takes {bound / plain:.3f} times as long once committed: {1000 * plain:.2f} and "
        f"{1000 * bound:.2f} ms"
    )


if __name__ == "__main__":
    main()
