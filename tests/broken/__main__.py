"""Starts a broken server or client: ``python -m tests.broken NAME``, and the arguments of the sound program."""

import sys
from importlib import import_module

from tests.broken import PROGRAMS, table

if __name__ == "__main__":
    name = sys.argv.pop(1)
    row = table(name.rpartition("/")[2])[name]
    main = import_module(PROGRAMS[row.check[0]]).main  # first: it sets what libraries read when they are imported
    getattr(import_module(row.module), row.function)()
    main()
