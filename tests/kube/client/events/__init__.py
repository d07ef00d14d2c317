"""Tests of berth.kube.client.events."""
