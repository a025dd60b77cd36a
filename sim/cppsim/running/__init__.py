"""The state, the clocks, the waits and the main loop of a compiled simulation."""
