"""What a device is given to do and what it did, for people to look at. Never changes either."""
