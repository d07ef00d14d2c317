"""Tests of berth_plugins.default_preemption."""
