"""Any Amaranth circuit with one clock as a compiled C++ model. Knows nothing of bitlane."""
