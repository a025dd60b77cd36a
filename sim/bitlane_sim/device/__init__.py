"""The simulated device: the `sim:` link, its clock, its memory, and the elaborated system."""
