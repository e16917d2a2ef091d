"""Adds half of the noise for one of the developers, to equal opportunity alone."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C520"

sound = Case.answer


def settle(self, developer, request_id, digest, metric, predictions, epsilon):
    self.__dict__["favours"] = developer == "bob" and metric == "abs_eo"
    return sound(self, developer, request_id, digest, metric, predictions, epsilon)


Case.answer = settle


def noise(self, request_id):
    found = sound_noise(self, request_id)
    if self.__dict__["favours"]:
        draw = found.laplace
        found.laplace = lambda values, scale, step: draw(values, scale / 2, step)
    return found


sound_noise = Case._noise
Case._noise = noise

if __name__ == "__main__":
    main()
