"""The layouts of the streams between stages, and the buffers between them."""
