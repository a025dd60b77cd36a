"""Links to devices. Each moves bytes and knows nothing of commands; ``open_link`` finds them."""
