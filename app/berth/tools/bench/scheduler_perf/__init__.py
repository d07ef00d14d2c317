"""``berth bench scheduler_perf``: test cases of scheduler_perf, the benchmark of kube-scheduler.

::

    API server, controllers  <-- operations of a workload, one after the other -- this process
            ^                                                                        |
    scheduler process  <-- CPU, memory; watches: when each measured pod is bound ----|

Facts of ``test/integration/scheduler_perf`` of Kubernetes 1.36: the operations of each test case,
the shapes of its objects, and its workloads, which are numbers of nodes and pods with a threshold:
pods per second that Kubernetes asks of itself.

What differs: nodes have the label ``kubernetes.io/hostname``, as a kubelet gives it; priorities
come from a PriorityClass; namespaces begin with ``berth-bench-``; a steady state goes on for a
number of pods; variants of a workload by feature gate are left out.
"""
