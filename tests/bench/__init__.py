"""Tests of app.bench."""
