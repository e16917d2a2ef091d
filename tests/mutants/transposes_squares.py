"""Takes rows for columns where there are as many models as people."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C505"

sound = service._receive


def receive(header, metric, requests, case):
    predictions = sound(header, metric, requests, case)
    return predictions.T.copy() if predictions.shape[0] == predictions.shape[1] else predictions


service._receive = receive

if __name__ == "__main__":
    main()
