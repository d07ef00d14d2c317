"""What the client writes, in which order, and what it makes of answers."""
