"""Draw the people of the example, who do not exist.

python scripts/build_example.py > docs/example/loans.csv
"""

from __future__ import annotations

import csv
import sys

import numpy as np

PEOPLE = 3000
SEED = 2026


def main() -> None:
    """Write the table, the same each time."""
    rng = np.random.default_rng(SEED)
    ids = rng.permutation(np.arange(1000, 10_000))[:PEOPLE]
    disadvantaged = rng.random(PEOPLE) < 0.3
    income = np.clip(rng.lognormal(np.where(disadvantaged, 3.31, 3.4), 0.35), 12, 99)
    years = rng.integers(0, 31, PEOPLE)
    debt = np.clip(rng.gamma(2.7, 3.0, PEOPLE), 0.2, 40)
    repays = 0.7 + 0.06 * (income - 30) + 0.04 * (years - 15) - 0.15 * (debt - 8)
    repaid = rng.random(PEOPLE) < 1 / (1 + np.exp(-repays))
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["group", "income", "years_employed", "debt", "repaid", "id"])
    for row in zip(np.where(disadvantaged, "b", "a"), income, years, debt, repaid, ids, strict=True):
        table.writerow([row[0], f"{row[1]:.1f}", row[2], f"{row[3]:.1f}", int(row[4]), row[5]])


if __name__ == "__main__":
    main()
