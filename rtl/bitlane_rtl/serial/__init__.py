"""From a UART's pins to memory and control window, and back. `abi.frames` is the contract."""
