"""Draws a release anew when it is asked for again."""

from compliance.__main__ import main
from compliance.answers.releases import Release

KILLED_BY = "C301"


def encoded(self, entry):
    return self.sanitised(entry.request.request_id, entry.request.loss.epsilon)


Release.encoded = encoded

if __name__ == "__main__":
    main()
