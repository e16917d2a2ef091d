"""Takes a guess before compliance serves the trial."""

from sim import referee
from sim.conformance.reference_referee import main

KILLED_BY = "R104"

sound = referee.Referee.SubmitReveal


def submit(self, request, context):
    with self.table.changing():
        self.table.playing(referee._RevealTrial, request.deal_id).served = True
    return sound(self, request, context)


referee.Referee.SubmitReveal = submit

if __name__ == "__main__":
    main()
