"""Takes a certificate's common name for a URI."""

from compliance.__main__ import main
from fairwall.rpc import identity, server

KILLED_BY = "C109"


def identify(context, sound=server.identify):
    names = context.auth_context().get("x509_common_name", ())
    return sound(context) or identity._only_caller(name.decode() for name in names)


server.identify = identify

if __name__ == "__main__":
    main()
