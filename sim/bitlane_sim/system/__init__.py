"""The circuit that is simulated: core, AXI4 memory, control manager and monitor."""
