"""Takes thresholds for the same that are the same in float32."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C320"

sound = service.audit_digest


def digest(header, predictions):
    other = type(header)()
    other.CopyFrom(header)
    if other.HasField("threshold"):
        other.threshold = float(np.float32(other.threshold))
    return sound(other, predictions)


service.audit_digest = digest

if __name__ == "__main__":
    main()
