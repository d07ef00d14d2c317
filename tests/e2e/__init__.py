"""Whole processes against each other: what shows only when they are killed, or stopped."""
