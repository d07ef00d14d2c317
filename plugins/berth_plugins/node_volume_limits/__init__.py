"""NodeVolumeLimits: a node takes as many volumes of a driver as its CSINode says (spec §5.16).

What lives here: the plugin, what drivers call the volumes of pods, which of them are attached, how
many there are by node and driver, and the queueing hints.
"""
