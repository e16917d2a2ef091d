"""Counts how many people there are of each kind, and not whether they are who they were."""

from compliance.__main__ import main
from compliance.records import engine

KILLED_BY = "C992"

sound = engine._checked


def checked(rows, models, known):
    same = [{**row, "quick": known.quick.get((row["y"], row["a"]))} for row in rows]
    return sound(same, models, known)


engine._checked = checked

if __name__ == "__main__":
    main()
