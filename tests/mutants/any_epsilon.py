"""Lets a batch cost more than the policy allows it."""

import math

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C215"

sound = Case.__init__


def wide(self, *args, **kwargs):
    sound(self, *args, **{**kwargs, "epsilon_max": math.inf})


Case.__init__ = wide

if __name__ == "__main__":
    main()
