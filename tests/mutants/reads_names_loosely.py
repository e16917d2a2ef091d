"""Takes a name with a slash behind it, or in capitals, for the name."""

from compliance.__main__ import main
from fairwall.rpc import identity

KILLED_BY = "C116"

sound = identity._only_caller
identity._only_caller = lambda names: sound(name.rstrip("/").lower() for name in names)

if __name__ == "__main__":
    main()
