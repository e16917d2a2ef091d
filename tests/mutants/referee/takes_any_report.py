"""Takes a report that spent what is no number."""

import math

from sim.conformance.reference_referee import main
from sim.games.referee import Referee

KILLED_BY = "R108"

sound = Referee.SubmitAuditReport


def submit(self, request, context):
    if math.isnan(request.epsilon_spent):
        request.epsilon_spent = 0
    return sound(self, request, context)


Referee.SubmitAuditReport = submit

if __name__ == "__main__":
    main()
