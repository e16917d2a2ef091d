"""Answers about every table that the policy names, whoever asks."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.records.engine import Tables

KILLED_BY = "C991"

sound = Tables.sums


def sums(self, developer, name, *asked):
    opened = {key: replace(each, developers=frozenset({developer})) for key, each in self.opened.items()}
    return sound(replace(self, opened=opened), developer, name, *asked)


Tables.sums = sums

if __name__ == "__main__":
    main()
