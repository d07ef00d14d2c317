"""Tests of berth.parsers."""
