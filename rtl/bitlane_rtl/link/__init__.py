"""The serial link: from a UART's pins to memory and control window. `abi.link` is its contract."""
