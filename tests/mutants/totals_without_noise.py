"""Adds no noise to what models that are handed over say of everybody together."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.mechanisms import counts

KILLED_BY = "C986"

sound = counts.answer


def answer(question, facts, buy, **how):
    def bought(asked):
        noisy = buy(asked)
        return replace(noisy, totals=asked.stratum.totals) if asked.is_hidden else noisy

    return sound(question, facts, bought, **how)


counts.answer = answer

if __name__ == "__main__":
    main()
