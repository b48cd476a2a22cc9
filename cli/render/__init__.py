"""Values to text: terminal, JSON."""
