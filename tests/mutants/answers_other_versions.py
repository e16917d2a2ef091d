"""Answers methods of another version as if they were its own."""

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C801"

sound = server._Gate.intercept_service


def intercept(self, continuation, handler_call_details):
    details = handler_call_details
    changed = details._replace(method=details.method.replace(".v2.", ".v1."))
    return sound(self, continuation, changed)


server._Gate.intercept_service = intercept

if __name__ == "__main__":
    main()
