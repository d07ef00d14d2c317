"""What the commands of containers do: small programs in place of processes, by the clock.

What lives here: a shell and the commands that images for tests are made of, the files and the
environment of a container, and what servers in it answer. What must not: when a container starts
or stops (:mod:`berth.cluster.kubelet.pod_life`), and connections. Nothing here waits or does I/O.
"""
