"""secondtake: record what a coding agent did, play it again, or recast the model."""
