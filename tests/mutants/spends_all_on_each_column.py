"""Sanitises each column with all of epsilon, not with its share."""

from compliance.__main__ import main
from compliance.answers import releases as release
from compliance.mechanisms.local import PROTOCOLS, system

KILLED_BY = "C914"


def sanitised(self, request_id, epsilon):
    parts = [
        PROTOCOLS[self.protocol].sanitise(values, column.domain, epsilon, system())
        for column, values in self._by_column()
    ]
    return release.np.concatenate(parts, axis=1)


release.Release.sanitised = sanitised

if __name__ == "__main__":
    main()
