"""Makes a release a function of the request id alone."""

from compliance.__main__ import main
from compliance.answers import releases as release

KILLED_BY = "C114"


def sanitised(self, request_id, epsilon, sound=release.Release.sanitised):
    object.__setattr__(self, "seed", bytes(32))
    return sound(self, request_id, epsilon)


release.Release.sanitised = sanitised

if __name__ == "__main__":
    main()
