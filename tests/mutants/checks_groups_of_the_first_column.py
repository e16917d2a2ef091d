"""Serves groups that are smaller than the policy says, by any protected column but the first."""

from compliance.__main__ import main
from compliance.deployment.policy import loading
from compliance.records.people import Records

KILLED_BY = "C967"

sound = loading._records


def records(policy, table, split):
    if split == policy.data.splits[0]:
        return sound(policy, table, split)
    loose = policy.model_copy(update={"data": policy.data.model_copy(update={"minimum_group": 1})})
    found = sound(loose, table, split)
    return Records.imagined(found.labels, found.protected, found.metrics, policy.data.minimum_group)


loading._records = records

if __name__ == "__main__":
    main()
