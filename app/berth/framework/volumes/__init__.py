"""Persistent volumes: which nodes a pod's claims can have theirs on (spec §5.15).

What lives here: what claims a pod has and which are in use, which volumes match a claim and from
where they can be reached, what can be provisioned, and the commitment to a choice until the API
says so. What must not: answers to the scheduler, which are the plugins' (VolumeBinding, VolumeZone,
VolumeRestrictions, NodeVolumeLimits). Neighbours: ``berth.objects.storage`` (the objects), listers.
"""
