"""A recording of all that a scheduler heard and did, and the same decisions made again from it.

::

    watches, API answers, time --> recorder --> core        (record: berth run --record FILE)
                                      |
                                   lines --> file           JSON lines, compressed, rotated
                                      |
    following <-- replay <-------- reader                   (berth replay FILE)
        |            |
     differences    core: the same steps, in the same order, at the same times

``past_cluster`` stops a replay at a moment, and ``looking_back`` explains a pod there.

A scheduler core changes its state in steps that nothing interrupts: a watch tells of an object, a
pod is tried, a binding ends. What a step comes to follows from the state, from the time and from
chance. So the order of the steps, the time of each, and one seed are enough to make all of them
again. ``lines`` says what is kept of each step, :mod:`berth.scheduler.framework.exports` what is
left out of objects. A plugin that reads annotations which it does not declare may decide
differently in a replay.

What must not live here: HTTP, and rules of scheduling. Neighbours below: ``berth.scheduler.core``,
whose ``journal`` says what a recorder is told, and ``berth.insight.explain``; above:
``berth.service``, which records and shows recordings, and ``berth.cli.replay``, which replays.
"""
