"""Volumes that the scheduler matches and provisions."""
