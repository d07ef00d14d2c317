"""Where objects are kept, with a log of their changes for watches."""
