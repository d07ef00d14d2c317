"""Tests of app.cache."""
