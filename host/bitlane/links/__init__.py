"""Links to boards. Each moves bytes and knows nothing of commands; ``open_link`` finds them."""
