"""The measurements and checks of the simulated system, as circuits without outputs to it."""
