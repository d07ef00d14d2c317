"""Tests of berth.scheduler.metrics."""
