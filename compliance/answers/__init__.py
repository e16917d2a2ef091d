"""Validation, charging and answering of every kind of request that compliance serves."""
