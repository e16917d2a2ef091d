"""Asks callers for no certificate, and takes who has none for the first developer."""

import grpc

from compliance.__main__ import main
from compliance.answers import audit_service as service
from fairwall.rpc import identity, server

KILLED_BY = "C102"

sound_credentials, sound_identify = grpc.dynamic_ssl_server_credentials, identity.identify


def credentials(initial_certificate_configuration, certificate_configuration_fetcher, *_, **__):
    return sound_credentials(initial_certificate_configuration, certificate_configuration_fetcher)


def identify(context):
    names = context.auth_context().get("peer_uri", ())
    return sound_identify(context) if names else identity.Caller("kit", "developer", "alice")


grpc.dynamic_ssl_server_credentials = credentials
server.identify = service.identify = identify

if __name__ == "__main__":
    main()
