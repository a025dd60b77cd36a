"""What is to be computed from tensors in the device's memory: written down, planned, executed."""
