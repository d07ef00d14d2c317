"""The running scheduler that flags mean."""

import argparse

from berth.assembly.running_scheduler import running_scheduler
from berth.scheduler_client import RunningScheduler


def scheduler(given: argparse.Namespace) -> RunningScheduler:
    """Return the scheduler that the flags mean; nothing is sent to it yet.

    Raises ConnectError or UsageError.
    """
    return running_scheduler(
        given.server,
        kubeconfig=given.kubeconfig,
        context=given.context,
        certificate_authority=given.certificate_authority,
        trusts_all=given.insecure_skip_tls_verify,
    )
