"""Takes a server whose name begins like the one it means."""

import ssl

from cryptography import x509

from fairwall.rpc import channel
from sim.conformance.reference_client import main

KILLED_BY = "K113"

sound = channel.connect


def connect(address, server, credentials, *rest, **named):
    host, _, port = address.rpartition(":")
    shown = x509.load_pem_x509_certificate(ssl.get_server_certificate((host, int(port))).encode())
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    wanted = channel.server_name_of(credentials.run, server)
    if any(name.startswith(wanted) for name in names.get_values_for_type(x509.DNSName)):
        channel.server_name_of = lambda *_: names.get_values_for_type(x509.DNSName)[0]
    return sound(address, server, credentials, *rest, **named)


channel.connect = connect

if __name__ == "__main__":
    main()
