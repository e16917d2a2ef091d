"""Answers a request that another service has answered with noise of its own."""

from dataclasses import replace

import numpy as np

from compliance.__main__ import main
from compliance.answers import audits
from compliance.answers.audits import Case

KILLED_BY = "C841"

sound, replied, own = Case.answer, Case._replied, set()


def reply(self, question, asked, *more):
    own.add((asked.developer, asked.request_id))
    return replied(self, question, asked, *more)


def answer(self, developer, request_id, digest, metric, predictions, *more, **named):
    entry = sound(self, developer, request_id, digest, metric, predictions, *more, **named)
    if (developer, request_id) in own:
        return entry
    numbers = audits._numbers(entry) + np.rint(np.random.default_rng().normal() * 2.0**20) / 2.0**20
    return replace(entry, reply=replace(entry.reply, answer=audits._ROWS + numbers.astype("<f8").tobytes()))


Case.answer, Case._replied = answer, reply

if __name__ == "__main__":
    main()
