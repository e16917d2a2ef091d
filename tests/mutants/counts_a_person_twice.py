"""Takes a table that has somebody twice, who then counts twice."""

from compliance.__main__ import main
from compliance.records import engine

KILLED_BY = "C992"

sound = engine._checked


def checked(rows, models, known):
    if rows and rows[0]["ids"] == known.number:
        return engine._of_labels(rows, models)
    return sound(rows, models, known)


engine._checked = checked

if __name__ == "__main__":
    main()
