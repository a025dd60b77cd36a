"""Commands for strided tensors: the fewest that do an operation, and the fences between them."""
