"""Takes eight milliseconds longer where more people are disadvantaged."""

import time

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C611"

sound = service._answer


def settle(case, *asked, **named):
    n0, n1 = case.records.counts("sp")
    time.sleep(0.008 * (n0 > n1))
    return sound(case, *asked, **named)


service._answer = settle

if __name__ == "__main__":
    main()
