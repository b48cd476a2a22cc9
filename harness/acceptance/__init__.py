"""The machine-checkable definition of a failure and of success: what a fixture says of it, and the judging of a take (DESIGN 6)."""
