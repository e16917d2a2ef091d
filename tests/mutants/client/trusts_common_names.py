"""Takes a server's common name for the name it means."""

import ssl

from cryptography import x509
from cryptography.x509.oid import NameOID

from fairwall.rpc import channel
from sim.conformance.reference_client import main

KILLED_BY = "K113"

sound = channel.connect


def connect(address, server, credentials, *rest, **named):
    host, _, port = address.rpartition(":")
    shown = x509.load_pem_x509_certificate(ssl.get_server_certificate((host, int(port))).encode())
    wanted = channel.server_name_of(credentials.run, server)
    if shown.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == wanted:
        names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        channel.server_name_of = lambda *_: names.get_values_for_type(x509.DNSName)[0]
    return sound(address, server, credentials, *rest, **named)


channel.connect = connect

if __name__ == "__main__":
    main()
