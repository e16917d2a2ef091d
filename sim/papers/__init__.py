"""What papers claim, how each claim is tested here, what was measured, and the verdict that follows from it.

A paper is a TOML file; a claim's evidence is a JSON file beside it, from which its verdict is computed again.
"""
