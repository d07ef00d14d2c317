"""Tests of berth.kube.client.writes."""
