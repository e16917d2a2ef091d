"""Takes a guess before compliance serves the trial."""

from sim.conformance.reference_referee import main
from sim.games.reveal import referee

KILLED_BY = "R104"

sound = referee.RevealDealer.SubmitReveal


def submit(self, request, context):
    with self.table.changing():
        self.table.playing(referee._RevealTrial, request.deal_id).served = True
    return sound(self, request, context)


referee.RevealDealer.SubmitReveal = submit

if __name__ == "__main__":
    main()
