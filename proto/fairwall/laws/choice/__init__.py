"""The choice of a mechanism for a batch, from public numbers: predictions, cells and earlier purchases."""
