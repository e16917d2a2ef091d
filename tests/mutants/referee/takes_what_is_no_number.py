"""Takes an accuracy that is no number."""

from sim.conformance.reference_referee import main
from sim.games.reveal import referee

KILLED_BY = "R108"


def accuracies(request, *, labelled):
    return request.accuracy_base, referee.take_numbers(request.accuracy_models, request.queries, finite=False)


referee._accuracies = accuracies

if __name__ == "__main__":
    main()
