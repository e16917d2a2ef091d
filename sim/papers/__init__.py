"""Papers' claims, their tests and evidence, and the verdicts that follow.

A paper is a TOML file; a claim's evidence is a JSON file beside it, from which its verdict is computed again.
"""
