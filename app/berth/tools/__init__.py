"""Tools that run beside a scheduler. See README.md."""
