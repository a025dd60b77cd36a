"""The path from a command to bursts: loop nest, addresses, splitter. It accesses no memory."""
