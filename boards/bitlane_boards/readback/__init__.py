"""A build read back as a netlist that can be simulated: bitstreams, routed and mapped circuits."""
