"""The decoder: its cells, what drives them, and the loops under it."""
