"""Write designs as C++ and compile them. Knows Amaranth, and nothing of what is simulated."""
