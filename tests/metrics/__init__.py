"""Tests of berth.metrics."""
