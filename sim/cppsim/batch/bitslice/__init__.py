"""A plain design as gates of up to three inputs, for words that hold one bit of many instances."""
