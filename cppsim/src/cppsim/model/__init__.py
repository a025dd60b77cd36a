"""One circuit with ports by name: compiled, or in Amaranth's simulator; its RAM may lie outside."""
