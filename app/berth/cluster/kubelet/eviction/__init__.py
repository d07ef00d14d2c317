"""Node-pressure eviction: what a kubelet does when its node runs out of something.

After ``pkg/kubelet/eviction`` of Kubernetes 1.36. All of it is synchronous and does no I/O:

- :mod:`.signals`, :mod:`.thresholds`: what is watched, and how little of it is too little;
- :mod:`.stats`: what pods and the node use (the kubelet's summary API);
- :mod:`.observations`: the stats as signals;
- :mod:`.ranking`, :mod:`.messages`: which pod goes first, and what it is told;
- :mod:`.local_storage`: pods that exceed their own limits of storage;
- :mod:`.manager`: the object per node that remembers since when;
- :mod:`.admission`: which pods a node under pressure takes;
- :mod:`.out_of_memory`: which container the kernel kills when the manager was too slow.

Who calls it and carries out what it says is :mod:`berth.cluster.kubelet.pressure`.
"""
