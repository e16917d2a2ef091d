"""Takes requests for the same whose predictions are the same in float32."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C320"

sound = service.audit_digest
service.audit_digest = lambda header, predictions: sound(header, np.ascontiguousarray(predictions.astype(np.float32)))

if __name__ == "__main__":
    main()
