"""Gives the release that an id stands for, whatever epsilon is offered."""

from compliance.__main__ import main
from compliance.answers.releases import Release

KILLED_BY = "C904"


def settle(self, developer, request_id, digest, epsilon, sound=Release.answer):
    return sound(self, developer, request_id, b"the same", epsilon)


Release.answer = settle

if __name__ == "__main__":
    main()
