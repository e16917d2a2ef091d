"""Games a second of decoding by expectation propagation: n = 100, m = 40, N0 = 10, printed Conceal, random 0/1 rows.

    OPENBLAS_NUM_THREADS=1 python benchmarks/ep_games.py [--games 1000] [--epsilon 1000] [--slow-games 200]

The same games are decoded by `ep`, by `score` and, the first few of them, by `l1`; sizes are known. Times are of the
decoder alone, in one process, after one game to load what is loaded once; ratios are of the time a game. Exit status 1
if `ep` needs 60 s or more for 1,000 games.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from short import parsed

from developer.reveal.decode import ep, l1, score
from developer.reveal.decode.decoder import Decoder, DecoderInputs
from fairwall.laws.mechanisms.calibration import conceal_law

PEOPLE, QUERIES, N0 = 100, 40, 10
BAR_SECONDS = 60.0


def game(seed: int, epsilon: float) -> tuple[DecoderInputs, np.ndarray]:
    """Deal one game: the evidence, and who is disadvantaged, (n,)."""
    rng = np.random.default_rng(seed)
    n1 = PEOPLE - N0
    z = rng.permutation(PEOPLE) < N0
    rows = rng.integers(0, 2, (QUERIES, PEOPLE)).astype(np.float64)
    # The size query takes its share.
    law = conceal_law("sp", N0, n1, QUERIES, epsilon * QUERIES / (QUERIES + 1))
    gaps = rows @ np.where(z, -1 / N0, 1 / n1) + law.sample(rng, QUERIES)
    return DecoderInputs(rows, gaps, N0, n1, law), z


def main() -> int:
    """Print seconds a game, leakage, and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--epsilon", type=float, default=1000.0)
    parser.add_argument("--slow-games", type=int, default=200, help="how many of them l1 plays")
    asked = parsed(parser, games=10, slow_games=2)
    games = [game(seed, asked.epsilon) for seed in range(asked.games)]
    decoders: dict[str, tuple[Decoder, int]] = {
        "ep": (ep.decode, asked.games),
        "score": (score.decode, asked.games),
        "l1": (l1.decode, min(asked.slow_games, asked.games)),
    }
    seconds: dict[str, float] = {}
    for name, (decode, count) in decoders.items():
        decode(games[0][0])
        started = time.perf_counter()
        found = [decode(evidence) for evidence, _ in games[:count]]
        spent = time.perf_counter() - started
        seconds[name] = spent / count
        leaks = []
        for v, (evidence, z) in zip(found, games, strict=False):
            guess = v < (1 / evidence.n1 - 1 / evidence.n0) / 2
            leaks.append(50 * float(guess[z].mean() + (~guess[~z]).mean()))
        print(f"{name:<6}{count:>6} games {spent:>8.2f} s {1000 * seconds[name]:>8.2f} ms a game, "
              f"mean leakage {np.mean(leaks):5.1f}%", flush=True)  # fmt: skip
    print(f"ep / score: {seconds['ep'] / seconds['score']:.1f} times the time")
    print(f"ep / l1:    {seconds['ep'] / seconds['l1']:.2f} times the time")
    print(f"1,000 games with ep: {1000 * seconds['ep']:.1f} s (bar {BAR_SECONDS:g} s)")
    return int(1000 * seconds["ep"] >= BAR_SECONDS and not asked.short)


if __name__ == "__main__":
    sys.exit(main())
