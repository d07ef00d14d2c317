"""Reflectors and stores against a scripted API; what HTTP does is tested in tests/client."""
