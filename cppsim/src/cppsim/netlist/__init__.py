"""Amaranth's netlist of a design in plain form, and passes that keep its behaviour."""
