"""What people run beside a scheduler. See README.md."""
