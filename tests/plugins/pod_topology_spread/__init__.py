"""Constraints and domains of topology spread."""
