"""Answers with the first model whichever is asked for."""

from developer import service
from sim.conformance.reference_developer import main

KILLED_BY = "D102"


def audited(models, features, answer, sound=service.Audited):
    return sound(models, features, lambda _, rows: answer(0, rows))


main.__globals__["Audited"] = audited

if __name__ == "__main__":
    main()
