"""Privacy: amounts of loss, and what a batch, a whole budget or one answer reveals."""
