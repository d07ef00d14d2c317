"""Compares policies: the same workload, scheduled by each of them, from the same seeds.

::

    RUN.yaml --> spec --> workload (recording, trace, ...)
                     \\-> policies       |
                              \\         v
                               run: one policy, one workload, one seed --> curves
                                         |
                 parallel: all runs in processes --> summary: mean, spread, differences --> report
"""
