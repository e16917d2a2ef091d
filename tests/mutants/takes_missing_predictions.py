"""Takes a prediction that a table lacks for 0."""

from compliance.__main__ import main
from compliance.records import engine

KILLED_BY = "C993"

sound = engine._checked


def checked(rows, models, known):
    whole = [{**row, **{f"count{j}": row["n"] for j in range(models)}} for row in rows]
    return sound(whole, models, known)


engine._checked = checked

if __name__ == "__main__":
    main()
