"""A compiled design in memory, and small programs that look into it."""
