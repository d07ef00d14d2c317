"""Tests of berth.cli.settings."""
