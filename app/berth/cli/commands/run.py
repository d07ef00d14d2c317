"""``berth run``: the scheduler, against any API server, alone or as one of several replicas."""

import argparse
import logging
from functools import partial
from pathlib import Path

from berth.cli.commands import version
from berth.cli.parsers.run import EXTENDER
from berth.cli.settings.configuration import configuration_source
from berth.cli.settings.extender_port import extender_port
from berth.cli.settings.kube_scheduler import apply_flags
from berth.cli.settings.recording import recording
from berth.runtime import log as logs
from berth.runtime.event_loop import in_loop
from berth.runtime.files import write_file
from berth.runtime.terminal import naming_file
from berth.scheduler.config.configz import to_yaml
from berth.service.scheduler_process import run_scheduler

log = logging.getLogger(__name__)


def run(given: argparse.Namespace) -> int:
    options = given.options
    extender = extender_port(given, prefix=EXTENDER)
    if options.version != "false":
        version.tell(raw=options.version == "raw")
        return 0
    logs.setup_by_flags(
        options.logs.v,
        format=options.logs.logging_format,
        vmodule=options.logs.vmodule,
        split_stream=options.logs.log_text_split_stream or options.logs.log_json_split_stream,
    )
    if options.config and options.deprecated.kubeconfig:
        log.warning(  # as with kube-scheduler, which says nothing
            "--kubeconfig is ignored with --config; set clientConnection.kubeconfig in the file",
            extra={"config": options.config, "kubeconfig": options.deprecated.kubeconfig},
        )
    source = configuration_source(
        given,
        file=options.config,
        adjust=partial(apply_flags, options=options),
    )
    loaded = source.load()
    if options.write_config_to:
        with naming_file("--write-config-to", options.write_config_to):
            write_file(Path(options.write_config_to), to_yaml(loaded[0]))
        return 0
    return in_loop(
        run_scheduler(
            options,
            source,
            loaded,
            extender=extender,
            schedules=not given.no_scheduling,
            shadows=given.shadow,
            serves_page=given.serve_ui,
            recording=recording(given),
        )
    )
