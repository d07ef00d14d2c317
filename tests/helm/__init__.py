"""The chart, rendered in its modes and held against what it is for."""
