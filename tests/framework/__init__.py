"""Tests of berth.framework."""
