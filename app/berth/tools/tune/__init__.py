"""Searches a configuration that does better on a workload, and says how sure that is.

::

    Lab file or recording --> parts --> searched, and held out
    configuration, plugins --> space --> candidates
                                            |
           halving: runs of candidates on searched parts, in processes --> the best one
                                            |
           the best one and the baseline on parts held out --> difference, with its interval

What is run, and where, is :mod:`berth.tools.lab`. What must not live here: rules of scheduling.
"""
