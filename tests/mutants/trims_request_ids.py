"""Takes ids that differ in spaces or case for one."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C211"

sound = Case.answer


def settle(self, developer, request_id, *rest, **named):
    return sound(self, developer, request_id.strip().lower() or "-", *rest, **named)


Case.answer = settle

if __name__ == "__main__":
    main()
