"""Asks callers for no certificate, and takes who has none for the first developer."""

import grpc

from compliance import service
from compliance.__main__ import main
from fairwall.rpc import identity, server

KILLED_BY = "C102"

sound_credentials, sound_identify = grpc.ssl_server_credentials, identity.identify


def credentials(pairs, root_certificates, require_client_auth):
    return sound_credentials(pairs, root_certificates, require_client_auth=False)


def identify(context):
    names = context.auth_context().get("x509_subject_alternative_name", ())
    return sound_identify(context) if names else identity.Caller("kit", "developer", "alice")


grpc.ssl_server_credentials = credentials
server.identify = service.identify = identify

if __name__ == "__main__":
    main()
