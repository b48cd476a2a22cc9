"""A matrix: arms by repeats, designed and sealed before the first call, run resumably."""
