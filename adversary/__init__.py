"""The distribution-inference adversary: outside the institution, with black-box access to the released model."""
