"""Median error at the same pure epsilon: the printed Attribute-Conceal against `recommended`, and the public midpoint.

    python benchmarks/median_error.py [--draws 2000] [--sizes 100 1000 10000] [--queries 1 5 25 100 400]
        [--world scores decisions]

Every draw is one answer about fresh data with 10% disadvantaged people; a batch of m queries gives m draws, and at
least 40 batches are drawn: as it stands that takes hours. In the world `scores` predictions are uniform scores and only
chance makes gaps; in `decisions` 35% of the advantaged and 15% of the disadvantaged get a 1. Printed Conceal is
Algorithm 3 of Hamman, Chen, Dutta, FAccT 2023, as printed. Exit status 1 if a bar is missed: 4 times better in every
cell, 7 times for m >= 5, and never above 1.05 times the midpoint's error.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from short import parsed

from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion
from compliance.mechanisms.recommended import Recommended
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from fairwall.laws.choice.prediction import choose
from fairwall.laws.mechanisms.calibration import printed_conceal_scale

SIZES, QUERIES, EPSILONS, WORLDS = (100, 1000, 10000), (1, 5, 25, 100, 400), (1.0, 5.0, 10.0), ("scores", "decisions")
BATCHES_MIN = 40
BAR_ONE, BAR_MANY, BAR_MIDPOINT = 4.0, 7.0, 1.05


@dataclass(frozen=True)
class Cell:
    """Median errors in one cell."""

    midpoint: float
    printed: float
    clamped: float
    recommended: float

    def missed(self, queries: int) -> bool:
        """Whether the cell misses a bar."""
        bar = BAR_ONE if queries < 5 else BAR_MANY
        return self.printed < bar * self.recommended or self.recommended > BAR_MIDPOINT * self.midpoint


def draw(world: str, n: int, queries: int, generator: np.random.Generator) -> BatchQuestion:
    """Draw a batch about n people, the first tenth of them disadvantaged."""
    protected = (np.arange(n) >= n // 10).astype(np.uint8)
    uniform = generator.random((queries, n))
    predictions = uniform if world == "scores" else (uniform < np.where(protected, 0.35, 0.15)).astype(np.float64)
    return BatchQuestion("sp", predictions, Records(np.zeros(n, np.uint8), protected, ("sp",)))


def measure(world: str, n: int, queries: int, batches: int, seed: int) -> dict[float, Cell]:
    """Measure the cells of one world, size and batch, by epsilon."""
    generator = np.random.default_rng((seed, n, queries, WORLDS.index(world)))
    errors: dict[float, list[NDArray[np.float64]]] = {epsilon: [] for epsilon in EPSILONS}
    for _ in range(batches):
        question = draw(world, n, queries, generator)
        gaps = question.gaps()
        for epsilon in EPSILONS:
            scale = printed_conceal_scale(n // 10, n - n // 10, queries, epsilon)
            printed = gaps + scale * generator.standard_cauchy(queries)
            answers = Recommended().release(question, NO_FACTS, epsilon, 0.0, Seeded(generator)).values
            said = (np.zeros(queries), printed, np.clip(printed, -1, 1), answers)
            errors[epsilon].append(np.abs(np.array(said) - gaps))
    return {
        epsilon: Cell(*np.median(np.concatenate(found, axis=1), axis=1).tolist()) for epsilon, found in errors.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--queries", type=int, nargs="+", default=QUERIES)
    parser.add_argument("--batches", type=int, default=BATCHES_MIN, help="drawn at least")
    parser.add_argument("--world", nargs="+", choices=WORLDS, default=WORLDS)
    asked = parsed(parser, draws=2, batches=2, sizes=[100], queries=[1, 5], world=["scores"])
    print("Median error of one answer; ratios are printed Conceal / recommended. ! marks a missed bar.\n")
    print(f"{'n':>6}{'m':>5}{'eps':>4} {'world':<10}{'midpoint':>9}{'printed':>9}{'clamped':>9}{'recomm.':>9}"
          f"{'ratio':>8}{'clamped':>8}{'/ midp.':>8}  mechanism")  # fmt: skip
    cells: list[tuple[int, Cell]] = []
    for n in asked.sizes:
        for queries in asked.queries:
            many = max(asked.batches, -(-asked.draws // queries))
            found = {world: measure(world, n, queries, many, asked.seed) for world in asked.world}
            for epsilon in EPSILONS:
                for world in asked.world:
                    cell = found[world][epsilon]
                    cells.append((queries, cell))
                    print(f"{n:>6}{queries:>5}{epsilon:>4g} {world:<10}{cell.midpoint:>9.4f}{cell.printed:>9.4f}"
                          f"{cell.clamped:>9.4f}{cell.recommended:>9.4f}{cell.printed / cell.recommended:>8.1f}"
                          f"{cell.clamped / cell.recommended:>8.1f}{cell.recommended / cell.midpoint:>8.3f}  "
                          f"{choose('sp', n, queries, epsilon)}{' !' * cell.missed(queries)}", flush=True)  # fmt: skip
    one = [cell for queries, cell in cells if queries < 5]
    several = [cell for queries, cell in cells if queries >= 5]
    for name, group, bar in (("m = 1", one, BAR_ONE), ("m >= 5", several, BAR_MANY)):
        if not group:
            continue
        least = min(cell.printed / cell.recommended for cell in group)
        print(f"\nleast ratio, {name}: {least:.2f} (bar {bar:g})", end="")
    print(f"\nmost / midpoint: {max(c.recommended / c.midpoint for _, c in cells):.3f} (bar {BAR_MIDPOINT:g})")
    return int(any(cell.missed(queries) for queries, cell in cells) and not asked.short)


if __name__ == "__main__":
    sys.exit(main())
