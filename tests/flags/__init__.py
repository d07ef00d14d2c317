"""Tests of berth.flags."""
