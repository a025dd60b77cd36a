"""The contract of records, for many instances at once, on arrays of NumPy or CuPy.

Written from the contract alone: it knows no lowering, no driver and no circuit.

fields   records taken apart, and why one is refused
walk     the addresses that streams touch, element by element
values   what is computed of elements
model    the commands of all instances, one after the other
"""
