"""Tests of berth.cli.parsers."""
