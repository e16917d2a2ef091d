"""Takes requests for the same whose models stand in another order."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C320"

sound = service.audit_digest
service.audit_digest = lambda header, predictions: sound(header, np.ascontiguousarray(np.sort(predictions, axis=0)))

if __name__ == "__main__":
    main()
