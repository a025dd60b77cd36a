"""`bitlane demo`: uses of the circuit on real input. No other part of bitlane imports it.

The host prepares data (thresholds, packs, stripes) and judges results; every bit operation that
the demo shows is computed by the device.
"""
