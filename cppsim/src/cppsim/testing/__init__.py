"""Random designs and testbenches, and tests that see the same on several simulators."""
