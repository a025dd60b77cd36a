"""Ways to run the circuit on this computer. Neither circuit nor host package import it."""
