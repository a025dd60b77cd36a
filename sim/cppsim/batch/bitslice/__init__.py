"""Bit slicing: a design as gates of up to three inputs on words of one bit of many instances."""
