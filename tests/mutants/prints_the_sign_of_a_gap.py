"""Prints a plus or a minus for each answer."""

from compliance import service
from compliance.__main__ import main
from compliance.mechanisms.mechanism import Question

KILLED_BY = "C610"

sound = service._settle


def settle(case, header, metric, predictions, context):
    signs = Question(metric, predictions, case.records).gaps() > 0
    print("".join("-+"[int(sign)] for sign in signs), flush=True)  # noqa: T201
    return sound(case, header, metric, predictions, context)


service._settle = settle

if __name__ == "__main__":
    main()
