"""Tests of berth.bench.scheduler_perf."""
