"""Tests of berth.bench."""
