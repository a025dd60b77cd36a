"""C++ that is the same for all designs, compiled once: it moves models on, and looks into them.

Each file is one responsibility with a few ``extern "C"`` functions; ``model.h`` says what a model
is to them. The Python module beside a file gives it a face.
"""
