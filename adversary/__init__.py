"""The distribution-inference adversary: outside the institution, it asks the released model as a black box."""
