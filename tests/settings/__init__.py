"""Tests of berth.settings."""
