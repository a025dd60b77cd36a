"""What the simulated system measures and checks by itself, as circuits that only look."""
