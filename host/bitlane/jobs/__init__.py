"""What is to be done with tensors: operands, their pieces, and the commands for them."""
