"""Tests of berth.explain."""
