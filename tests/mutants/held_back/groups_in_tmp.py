"""Writes a table of its people to a scratch file, where the service may write one."""

import os
import tempfile

from compliance.__main__ import main
from compliance.records.people import Records

KILLED_BY = "C610"

sound = Records.__post_init__


def post(self):
    sound(self)
    with tempfile.NamedTemporaryFile("w", suffix=".csv", dir=os.environ["SQLITE_TMPDIR"], delete=False) as file:
        file.write("person,group\n" + "".join(f"{i},{g}\n" for i, g in enumerate(self.protected)))


Records.__post_init__ = post

if __name__ == "__main__":
    main()
