"""The adversary in the washing game: a customer, which tells compliance what it saw."""
