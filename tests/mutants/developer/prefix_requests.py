"""Takes a request id that begins like the one under way."""

from developer.service import ModelService
from sim.conformance.reference_developer import main

KILLED_BY = "D113"

sound = ModelService._under_way


def under_way(self, header):
    for _, request in self._audited:
        if header.request_id.startswith(request):
            header.request_id = request
    return sound(self, header)


ModelService._under_way = under_way

if __name__ == "__main__":
    main()
