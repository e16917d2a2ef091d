"""Takes requests for different whose predictions are the same numbers of another type."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C320"

sound = service.audit_digest

service.audit_digest = lambda header, predictions: sound(header, predictions) + predictions.dtype.char.encode()

if __name__ == "__main__":
    main()
