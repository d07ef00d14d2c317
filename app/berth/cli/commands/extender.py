"""``berth extender``: answers other schedulers, and schedules nothing itself."""

import argparse

from berth.cli.settings.configuration import configuration_source
from berth.cli.settings.extender_port import extender_port
from berth.runtime import log
from berth.runtime.event_loop import in_loop
from berth.service.extender_process import run_extender


def run(given: argparse.Namespace) -> int:
    settings = extender_port(given)
    assert settings is not None, "the port has a default"
    source = configuration_source(given)
    loaded = source.load()
    log.setup_by_flags(given.v)
    return in_loop(
        run_extender(source, loaded, settings, kubeconfig=given.kubeconfig, master=given.master)
    )
