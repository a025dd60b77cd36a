"""A flat netlist of a circuit, and its plain form that back ends write as Verilog or C++."""
