"""How a compiled simulation goes on: its state, its clocks, and who waits for them."""
