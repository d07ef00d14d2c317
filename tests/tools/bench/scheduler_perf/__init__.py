"""Tests of berth.tools.bench.scheduler_perf."""
