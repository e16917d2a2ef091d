"""Takes a score of one half of a model that is handed over for a no."""

from compliance.__main__ import main
from compliance.answers.sealed import Sealed

KILLED_BY = "C981"


def scores(self, models, *, binary, developer, goes_on):
    found = self.scorer.scores(self.features, models, self.seconds, binary=binary, developer=developer, goes_on=goes_on)
    return found > 0.5 if binary else found


Sealed.scores = scores

if __name__ == "__main__":
    main()
