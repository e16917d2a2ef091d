"""Chooses with twice the epsilon that was offered."""

from compliance.__main__ import main
from compliance.mechanisms import exponential

KILLED_BY = "C541"

sound = exponential.permute_and_flip_exponents
exponential.permute_and_flip_exponents = lambda scores, sensitivity, epsilon: sound(scores, sensitivity, 2 * epsilon)

if __name__ == "__main__":
    main()
