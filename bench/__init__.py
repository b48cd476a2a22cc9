"""What secondtake costs, measured side by side with `mitmdump` in one interleaved run: `uv run python -m bench`."""
