"""Tells narrower intervals about models that are handed over and accept few, who vary less."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.mechanisms import counts
from compliance.records.sums import StratumSums

KILLED_BY = "C987"

sound = counts.answer


def answer(question, facts, buy, **how):
    release = sound(question, facts, buy, **how)
    (stratum, *_) = question.asked.strata
    if not isinstance(stratum, StratumSums):
        return release
    share = stratum.totals / stratum.people
    half = (release.high - release.low) / 2 * (0.9 + 0.4 * share * (1 - share))
    middle = (release.high + release.low) / 2
    return replace(release, low=middle - half, high=middle + half)


counts.answer = answer

if __name__ == "__main__":
    main()
