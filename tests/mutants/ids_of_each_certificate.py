"""Takes a request under a renewed certificate for another one."""

import hashlib

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C119"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    shown = hashlib.sha256(context.auth_context()["x509_pem_cert"][0]).hexdigest()
    changed = type(header)()
    changed.CopyFrom(header)
    changed.request_id = shown[:24] + header.request_id
    return sound(case, changed, metric, predictions, context, *rest, **named)


service._answer = settle

if __name__ == "__main__":
    main()
