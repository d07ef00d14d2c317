"""Tests of app.server.debug."""
