"""Tests: builders and the harness here, then folders that mirror the source."""
