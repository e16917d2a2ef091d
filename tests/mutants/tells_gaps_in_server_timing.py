"""Tells how large the first gap is in a header that looks like a timing."""

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.mechanisms.mechanism import Question

KILLED_BY = "C605"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    gap = Question(metric, predictions, case.records).gaps()[0]
    context.send_initial_metadata((("server-timing", f"audit;dur={abs(gap) * 1000:.3f}"),))
    return sound(case, header, metric, predictions, context, *rest, **named)


service._answer = settle

if __name__ == "__main__":
    main()
