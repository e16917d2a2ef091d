"""Takes a name from whichever part of a certificate's alternative names."""

from compliance.__main__ import main
from compliance.answers import audit_service as service
from fairwall.rpc import identity, server

KILLED_BY = "C118"


def identify(context):
    names = context.auth_context().get("x509_subject_alternative_name", ())
    return identity._only_caller(name.decode("utf-8", "replace") for name in names)


server.identify = service.identify = identify

if __name__ == "__main__":
    main()
