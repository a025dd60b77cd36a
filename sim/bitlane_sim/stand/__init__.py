"""Many systems at once, each with its RAM, commands, data, timing and faults: what campaigns run.

component, alone  the circuit, and one instance of it with waveforms; only these need Amaranth
circuit           the circuit as text in a folder, so that another machine can run it
script, workload  what instances are told to do: plain steps, and commands with what disturbs them
model, judge      what the contract says that comes of it, for all at once, and whether it did
"""
