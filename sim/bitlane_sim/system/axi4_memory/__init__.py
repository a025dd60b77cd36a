"""An AXI4 memory as a circuit, with settable latency, stalls and faults; its storage is outside."""
