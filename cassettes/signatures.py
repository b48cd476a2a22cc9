"""The normalised identity of a failure (STATISTICS 1)."""
