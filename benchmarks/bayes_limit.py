"""How near decoders come to Bayes' rule, and a search to a strategy that knows: the figures of docs/attacks.md.

    OPENBLAS_NUM_THREADS=1 python benchmarks/bayes_limit.py [--games 40] [--searched 40]

n = 100, N0 = 10 and known, random 0/1 rows, features that are right about 60%. The reference is parallel tempering for
four times as long as a decoder has, twice, from different sets: how far the two are from one another is its own error
(standard deviation of a person's probability, of one run); a test holds the sampler against the exact posterior where
all sets can be listed. Leakage is the mean balanced accuracy with 95% intervals. Before, `searched` and `best` play the
same people, under sound mechanisms and under the broken twins in `tests/twins/answers.py`.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from short import parsed

from developer.reveal.decode import DecoderInputs, ep, mcmc
from developer.reveal.strategies import best, searched
from developer.reveal.strategies.strategy import PublicTerms, StrategyInputs
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, NoiseInputs
from tests.twins.answers import EPSILON, repeats_for_nothing, rounds_by_who_is_in

PEOPLE, N0, HUNCH = 100, 10, math.log(0.6 / 0.4)


def game(seed: int, mechanism: str, epsilon: float, m: int) -> tuple[DecoderInputs, NDArray[np.bool_]]:
    """Deal one game: the evidence, and who is disadvantaged."""
    rng = np.random.default_rng(seed)
    z = rng.permutation(PEOPLE) < N0
    rows = rng.integers(0, 2, (m, PEOPLE)).astype(np.float64)
    law = MECHANISM_LAWS[mechanism].error(NoiseInputs("sp", N0, PEOPLE - N0, m, epsilon, size_known=True))
    assert law is not None
    gaps = rows @ np.where(z, -1 / N0, 1 / (PEOPLE - N0)) + law.sample(rng, m)
    llr = np.where(rng.random(PEOPLE) < np.where(z, 0.6, 0.4), HUNCH, -HUNCH)
    return DecoderInputs(rows, gaps, N0, PEOPLE - N0, law, llr, np.random.default_rng((seed, 1))), z


def reference(evidence: DecoderInputs, seed: int, steps: int) -> NDArray[np.float64]:
    """Sample how often each person is disadvantaged, (n,), for as many steps as it takes."""
    own = replace(evidence, rng=np.random.default_rng((seed, 2)))
    with patch.multiple(mcmc, STEPS=steps, WORK=math.inf):
        return mcmc.marginals(own)


def right(disadvantaged: NDArray[np.bool_], z: NDArray[np.bool_]) -> float:
    """Return the balanced accuracy in percent."""
    return 50 * float(disadvantaged[z].mean() + (~disadvantaged[~z]).mean())


def told(name: str, found: list[float], others: str = "") -> None:
    """Print a mean with its interval."""
    print(
        f"  {name:<22}{np.mean(found):6.1f} +- {1.96 * np.std(found) / math.sqrt(len(found)):.1f}{others}", flush=True
    )


def limits(mechanism: str, epsilon: float, m: int, games: int, steps: int) -> None:
    """Print what Bayes' rule allows and what decoders reach."""
    found: dict[str, list[float]] = {"reference": [], "ep": [], "mcmc": []}
    apart, slowest = [], 0.0
    for seed in range(games):
        evidence, z = game(seed, mechanism, epsilon, m)
        runs = [reference(evidence, 2 * seed + of, steps) for of in (0, 1)]
        apart.append(np.mean((runs[0] - runs[1]) ** 2) / 2)
        found["reference"].append(right(np.mean(runs, axis=0) > N0 / PEOPLE, z))
        for name, decode in (("ep", ep.decode), ("mcmc", mcmc.decode)):
            started = time.perf_counter()
            v = decode(evidence)
            slowest = max(slowest, time.perf_counter() - started)
            found[name].append(right(v < (1 / evidence.n1 - 1 / N0) / 2, z))
    print(f"{mechanism}, epsilon {epsilon:g}, m = {m}, {games} games; slowest decoder {slowest:.1f} s", flush=True)
    told("reference", found["reference"], f"  (a run's probabilities are off by {math.sqrt(np.mean(apart)):.3f})")
    for name in ("ep", "mcmc"):
        told(name, found[name])


def search(name: str, terms: PublicTerms, simulate: searched.Simulate, queries: int, games: int) -> None:
    """Print what `searched` and `best` find out about the same people."""
    found: dict[str, list[float]] = {"searched": [], "best": [], "difference": []}
    for seed in range(games):
        for strategy, play in (("searched", lambda hand: searched.play(hand, simulate)), ("best", best.play)):
            z = np.random.default_rng((seed, 3)).permutation(PEOPLE) < N0
            hand = StrategyInputs(
                people=PEOPLE,
                base=lambda: np.full(PEOPLE, 0.5),
                prior=lambda: np.arange(PEOPLE, dtype=np.uint8) % 2,
                auditor=searched.SimulatedAuditor(simulate, z, np.random.default_rng((seed, 4))),
                rng=np.random.default_rng((seed, 5)),
                queries=queries,
                perturbation=1.0,
                terms=terms,
                llr=lambda: np.zeros(PEOPLE),
            )
            found[strategy].append(right(play(hand).guess == 0, z))
        found["difference"].append(found["searched"][-1] - found["best"][-1])
    print(f"{name}, at most {queries} answers, {games} games", flush=True)
    for strategy, values in found.items():
        told(strategy, values)


def main() -> int:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=40)
    parser.add_argument("--searched", type=int, default=40)
    parser.add_argument("--steps", type=int, default=4 * mcmc.STEPS)
    asked = parsed(parser, games=1, searched=1, steps=100)
    known = PublicTerms(n0=N0)
    search("repeats cost nothing", replace(known, mechanism="laplace", epsilon=EPSILON), repeats_for_nothing, 200,
           asked.searched)  # fmt: skip
    search("rounds by who is in", replace(known, mechanism="round", precision=2), rounds_by_who_is_in, 60,
           asked.searched)  # fmt: skip
    for mechanism, epsilon in (("laplace", 100.0), ("counts", 10.0), ("cauchy", 100.0), ("conceal", 100.0)):
        terms = replace(known, mechanism=mechanism, epsilon=epsilon)
        simulate = searched.by_law(terms)
        assert simulate is not None
        search(f"{mechanism}, epsilon {epsilon:g}", terms, simulate, 40, asked.searched)
    for mechanism, epsilon, m in (("conceal", 1000.0, 40), ("counts", 10.0, 22)):
        limits(mechanism, epsilon, m, asked.games, asked.steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
