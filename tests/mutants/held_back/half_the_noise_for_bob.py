"""Adds half of the noise for one of the developers, to equal opportunity alone."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C520"

sound = Case.answer


def settle(self, developer, request_id, digest, metric, predictions, *more, **named):
    self.__dict__["favours"] = developer == "bob" and metric == "abs_eo"
    return sound(self, developer, request_id, digest, metric, predictions, *more, **named)


Case.answer = settle


def noise(self, asked):
    found = sound_noise(self, asked)
    if self.__dict__["favours"]:
        draw = found.laplace
        object.__setattr__(found, "laplace", lambda values, scale, step: draw(values, scale / 2, step))
    return found


sound_noise = Case._noise
Case._noise = noise

if __name__ == "__main__":
    main()
