"""Stages: how hollow pods live, as data. Rules in YAML choose pods, and outcomes for them.

What lives here: the file's types, reading it, drawing from distributions, and the plans that
follow. What must not: what a container does with its plan (``berth.cluster.kubelet.pod_life``).
After the idea of KWOK's Stages.
"""
