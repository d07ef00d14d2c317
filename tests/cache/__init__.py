"""Tests of berth.cache."""
