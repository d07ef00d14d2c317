"""Storage of objects, with a log of their changes for watches."""
