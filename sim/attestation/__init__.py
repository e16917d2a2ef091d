"""Compliance's account of its ledger: a signed statement, and the page that is drawn from it."""
