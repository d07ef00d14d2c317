"""Decisions recorded from kube-scheduler 1.36.2 (``recorded/``; the shape is in FORMAT.md)."""
