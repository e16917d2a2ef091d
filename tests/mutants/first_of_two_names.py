"""Takes the first of several names in a certificate."""

from compliance.__main__ import main
from fairwall.rpc import identity

KILLED_BY = "C108"


def only_caller(names, sound=identity._only_caller):
    found = [caller for name in names if (caller := sound([name]))]
    return found[0] if found else None


identity._only_caller = only_caller

if __name__ == "__main__":
    main()
