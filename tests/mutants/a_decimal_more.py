"""Keeps one decimal more than its terms say."""

from compliance.__main__ import main
from compliance.answers import audits as case

KILLED_BY = "C530"

sound = case._rounded
case._rounded = lambda release, precision: sound(release, precision + 1 if isinstance(precision, int) else precision)

if __name__ == "__main__":
    main()
