"""Leaves blanks and capitals out of a request id."""

from developer.service import ModelService
from sim.conformance.reference_developer import main

KILLED_BY = "D113"

sound = ModelService._under_way


def under_way(self, header):
    header.request_id = header.request_id.strip().lower()
    return sound(self, header)


ModelService._under_way = under_way

if __name__ == "__main__":
    main()
