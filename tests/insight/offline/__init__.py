"""Tests of berth.insight.offline."""
