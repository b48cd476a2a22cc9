"""What is SEEN: commands and their rendering."""
