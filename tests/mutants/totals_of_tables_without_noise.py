"""Adds no noise to what a table adds up to over everybody."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.mechanisms import cube

KILLED_BY = "C995"

sound = cube.answer


def answer(question, facts, buy, **how):
    def bought(asked):
        noisy = buy(asked)
        return replace(noisy, totals=asked.stratum.totals) if asked.is_hidden else noisy

    return sound(question, facts, bought, **how)


cube.answer = answer

if __name__ == "__main__":
    main()
