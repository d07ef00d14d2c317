"""``berth run``: the scheduler, against any API server, alone or as one of several replicas."""

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from berth import log as logs
from berth.assembly.scheduler_process import run_scheduler
from berth.commands import version
from berth.config.configz import to_yaml
from berth.event_loop import in_loop
from berth.files import write_file
from berth.flags import configuration, extender_port, kube_scheduler
from berth.terminal import naming_file, program

log = logging.getLogger(__name__)

EXTENDER: Final = "extender-"
"""How the flags of the extender port begin."""


def main(argv: Sequence[str]) -> int:
    parser = kube_scheduler.make_parser(program("run"))
    extender_port.add_flags(parser, prefix=EXTENDER, default=None)
    configuration.add_plugin_flags(parser)
    configuration.add_preset_flag(parser)
    parser.add_argument(
        "--no-scheduling", action="store_true",
        help="Do not schedule, write, or take part in leader election; only answer requests"
        " such as /simulate.",
    )  # fmt: skip
    options = kube_scheduler.parse(parser, argv)
    given = parser.parse_args(kube_scheduler.spelled(argv))
    extender = extender_port.settings(given, prefix=EXTENDER)
    if options.version != "false":
        return version.main(("--raw",) if options.version == "raw" else ())
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
    source = configuration.source(
        given,
        file=options.config,
        adjust=partial(kube_scheduler.apply_flags, options=options),
    )
    loaded = source.load()
    if options.write_config_to:
        with naming_file("--write-config-to", options.write_config_to):
            write_file(Path(options.write_config_to), to_yaml(loaded[0]))
        return 0
    return in_loop(
        run_scheduler(options, source, loaded, extender=extender, schedules=not given.no_scheduling)
    )
