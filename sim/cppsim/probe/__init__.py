"""Read one expression of a compiled design without settling all of it."""
