"""Tests of berth.insight.explain."""
