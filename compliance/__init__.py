"""The compliance team: it holds the protected attributes and answers fairness-metric queries about them."""
