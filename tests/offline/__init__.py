"""Tests of berth.offline."""
