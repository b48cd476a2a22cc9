"""The JSON that providers speak, one dialect per file, independent of each other. Adapters add address, framing and places."""
