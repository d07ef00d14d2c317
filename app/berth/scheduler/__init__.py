"""The scheduler as a library: takes pods from the queue, finds nodes for them, binds them.

README.md has the picture. A pod goes through these modules, whose functions have the names they
have in kube-scheduler::

    event_handlers        a pod arrives: queue or cache
    schedule_one          the loop, and one attempt for one pod
      scheduling_steps      what attempts for one pod and for a group have in common
      cycle                 what the steps of a scheduling cycle share
      schedule_pod          the algorithm without PostFilter: prioritize_nodes, select_host
        find_nodes_that_fit   PreFilter, the nominated node, Filter; sampling cuts the result
      post_filter           run_post_filter_plugins, if no node fits
      with_extenders        the same steps, where extenders have a say
      gang, pod_group       the same steps, for pods that get nodes together
      outcome               what the attempt came to, with the evidence; decisions keeps a record
    reservation           assume and reserve, and how to undo both
    binding_cycle         Permit, PreBind, Bind, PostBind; binding says how far a pod is
    failure               handle_scheduling_failure: requeue the pod, then failure_reporter
    preemption            evicts the victims that PostFilter chose
    journal               told of each step, to make them again

What must not live here: HTTP, and knowledge of single plugins.
"""
