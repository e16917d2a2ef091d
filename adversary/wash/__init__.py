"""The adversary in the washing game: a customer, which reports observed decisions to compliance."""
