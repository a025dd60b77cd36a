"""Many instances of one design at once: on all cores, or on a GPU.

description, program  what a batch is and what it is told to do: plain data
encoding, values      a program as instructions and columns; numbers as users give them
runner, threads, cuda  run it; with these, and without Amaranth, `python -m cppsim.batch FOLDER`
circuit, gated         from an Amaranth design to gates on words, a bit of every instance in each
source, written, text  from those to the C++ that both backends compile
record, ports          what a testbench did on one instance, as a program for all
batch, folder          what a user holds; a folder of it for another machine
"""
