"""Compares the header and the first 64 KiB of a request with what its id was used for."""

from blake3 import blake3

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C321"


def digest(header, predictions):
    data = bytes(predictions.data.cast("B"))
    return blake3(header.SerializeToString(deterministic=True) + data[: 1 << 16]).digest()


service.audit_digest = digest

if __name__ == "__main__":
    main()
