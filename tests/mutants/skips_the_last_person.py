"""Never looks at the last person of the test set."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C503"

sound = service._receive


def receive(header, metric, requests, case):
    predictions = sound(header, metric, requests, case).copy()
    predictions[:, -1] = predictions[:, 0]
    return predictions


service._receive = receive

if __name__ == "__main__":
    main()
