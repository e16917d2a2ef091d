"""Takes the developer's name from the beginning of the request id."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C113"

sound = Case.answer


def settle(self, developer, request_id, *rest, **named):
    name = request_id.partition("/")[0] if "/" in request_id else developer
    return sound(self, name if name in ("alice", "bob") else developer, request_id, *rest, **named)


Case.answer = settle

if __name__ == "__main__":
    main()
