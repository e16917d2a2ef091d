"""Takes a name that stands twice for one."""

from compliance.__main__ import main
from fairwall.rpc import identity

KILLED_BY = "C117"

sound = identity._only_caller
identity._only_caller = lambda names: sound(set(names))

if __name__ == "__main__":
    main()
