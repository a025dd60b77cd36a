"""Many instances of one design at once: on all cores, or on a GPU.

batch                  `Batch`, the class for users; a program on one instance alone
description            ports, memories and sizes of a written design, as plain data
runner, threads, cuda  execute programs; with folder and without Amaranth, an exported batch
circuit                a lowered Amaranth design, and the names of its ports
bitslice/              the design as gates on words; each word holds one bit of many instances
source, emit           C++ of the gates, for each backend
record                 a testbench of one instance as a program for all
folder, __main__       an exported batch, and ``python -m cppsim.batch FOLDER``
"""
