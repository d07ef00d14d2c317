"""Tests of berth.tools.bench."""
