"""Takes the first of two messages where one is due."""

import itertools

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C723"

sound = itertools.islice
server.itertools = type("tools", (), {"islice": staticmethod(lambda stream, _: list(stream)[:1])})

if __name__ == "__main__":
    main()
