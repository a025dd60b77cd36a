"""The layouts of the streams between stages, and the queues that hold payloads unchanged."""
