"""Tests of berth.profile."""
