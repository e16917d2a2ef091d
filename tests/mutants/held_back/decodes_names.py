"""Decodes a URI before it reads it."""

from urllib.parse import unquote

from compliance.__main__ import main
from fairwall.rpc import identity

KILLED_BY = "C116"

sound = identity._only_caller
identity._only_caller = lambda names: sound(map(unquote, names))

if __name__ == "__main__":
    main()
