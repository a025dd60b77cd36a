"""Amaranth's netlist of a design in plain form, and changes to it that nothing shows."""
