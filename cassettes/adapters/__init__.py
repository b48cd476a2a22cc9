"""Provider wire formats, one file each, independent of each other."""
