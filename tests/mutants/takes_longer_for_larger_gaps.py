"""Takes four milliseconds longer for a gap of 1."""

import time

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.mechanisms.mechanism import Question

KILLED_BY = "C611"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    time.sleep(0.004 * abs(Question(metric, predictions, case.records).gaps()).max())
    return sound(case, header, metric, predictions, context, *rest, **named)


service._answer = settle

if __name__ == "__main__":
    main()
