"""Tests of berth.cli.flags."""
