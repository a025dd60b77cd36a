"""The circuit, in Amaranth, and `abi`: the contract between circuit and driver.

Nothing may be imported here: the driver takes `bitlane_rtl.abi` where Amaranth is not installed.
"""
