"""Takes one model more than its terms allow."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C205"

sound = service._check_size
service._check_size = lambda models, case: sound(models - 1 if models > case.queries_max else models, case)

if __name__ == "__main__":
    main()
