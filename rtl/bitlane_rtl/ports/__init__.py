"""The signatures that the engine is spoken to by, and the sharing of a port. Knows no bus."""
