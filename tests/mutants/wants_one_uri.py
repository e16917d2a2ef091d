"""Refuses a developer whose certificate has another URI besides."""

from compliance.__main__ import main
from fairwall.rpc import identity

KILLED_BY = "C117"

sound = identity._only_caller
identity._only_caller = lambda names: sound(listed) if len(listed := list(names)) == 1 else None

if __name__ == "__main__":
    main()
