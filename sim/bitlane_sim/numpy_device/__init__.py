"""The device ``numpy``: an interpreter of commands on NumPy bytes, without a circuit.

It is written from the contract, `bitlane_rtl.abi`, and knows neither the driver nor the circuit's
components. Where the contract leaves a value open, it takes any that the contract allows: commands
run one after the other, and one that fails on its way has written nothing.

Its counters are predicted, by the formulas of `cycles` in the order of `timeline`. A command that
fails counts nothing, and no time passes while the engine is stopped.
"""
