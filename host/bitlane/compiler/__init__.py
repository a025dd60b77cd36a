"""The compiler: expressions on tensors in the device's memory become passes, and these a run."""
