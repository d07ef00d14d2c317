"""``berth run``: the scheduler, against any API server, alone or as one of several replicas."""

import argparse
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from berth.cli import importing, version
from berth.cli.flags import kube_scheduler
from berth.cli.flags.configuration import add_plugin_flags, add_preset_flag, configuration_source
from berth.cli.flags.extender_port import add_extender_flags, extender_port
from berth.cli.flags.recording import add_recording_flags, recording
from berth.runtime import log as logs
from berth.runtime.terminal import naming_file, program

log = logging.getLogger(__name__)

EXTENDER: Final = "extender-"
"""How the flags of the extender port begin."""

SLOTS: Final = 64
MOST_SLOTS: Final = 1024


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse *argv*; ``options`` has the flags of kube-scheduler, as its Options."""
    parser = kube_scheduler.make_parser(program("run"))
    add_extender_flags(parser, prefix=EXTENDER, default=None)
    add_plugin_flags(parser)
    add_preset_flag(parser)
    parser.add_argument(
        "--serve-ui", action="store_true",
        help="Serve the page below /ui/ of the secure port, to who may get these paths.",
    )  # fmt: skip
    idle = parser.add_mutually_exclusive_group()
    idle.add_argument(
        "--no-scheduling", action="store_true",
        help="Do not schedule, write, or take part in leader election; only answer requests"
        " such as /simulate.",
    )  # fmt: skip
    idle.add_argument(
        "--shadow", action="store_true",
        help="Do not schedule, write, or take part in leader election; decide for the pods that"
        " another scheduler schedules under the schedulerNames of the profiles, and compare: see"
        " `berth shadow`.",
    )  # fmt: skip
    idle.add_argument(
        "--shards", type=_number_of_slots, nargs="?", const=SLOTS, metavar="SLOTS",
        help="Let all replicas schedule at once, each binding to the nodes of its share of so many"
        f" slots, {SLOTS} by default. All replicas need the same number.",
    )  # fmt: skip
    parser.add_argument(
        "--shard-label", type=_label_key, metavar="KEY",
        help="With --shards: have nodes fall into slots by the value of this label, such as"
        " topology.kubernetes.io/zone, instead of by their names. All replicas need the same.",
    )  # fmt: skip
    parser.add_argument(
        "--shard-pools", type=_label_values, default=(), metavar="VALUE[,VALUE...]",
        help="Values of the label of --shard-label whose nodes are for those replicas alone that"
        " --shard-pool names them to. All replicas need the same.",
    )  # fmt: skip
    parser.add_argument(
        "--shard-pool", default="", metavar="VALUE",
        help="The one of --shard-pools that this replica has, and nothing else.",
    )  # fmt: skip
    add_recording_flags(parser)
    given = parser.parse_args(kube_scheduler.spelled(argv))
    given.options = kube_scheduler.checked_options(parser, given)
    if given.shard_label and given.shards is None:
        parser.error("--shard-label needs --shards")
    if given.shard_pools and not given.shard_label:
        parser.error("--shard-pools needs --shard-label")
    if given.shard_pool and given.shard_pool not in given.shard_pools:
        parser.error(f"--shard-pool {given.shard_pool} is not among --shard-pools")
    return given


def _number_of_slots(text: str) -> int:
    """Read the value of ``--shards``."""
    if not (text.isdecimal() and 1 <= int(text) <= MOST_SLOTS):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a number from 1 to {MOST_SLOTS}")
    return int(text)


def _label_key(text: str) -> str:
    """Read the value of ``--shard-label``."""
    from berth.kube.objects.names import is_qualified_name

    if not is_qualified_name(text):
        raise argparse.ArgumentTypeError(f"{text!r}: must be the key of a label")
    return text


def _label_values(text: str) -> tuple[str, ...]:
    """Read the value of ``--shard-pools``."""
    from berth.kube.objects.names import is_label_value

    values = tuple(text.split(","))
    if len({*values}) < len(values) or not all(value and is_label_value(value) for value in values):
        raise argparse.ArgumentTypeError(f"{text!r}: must be different values of a label")
    return values


def run(given: argparse.Namespace) -> int:
    options = given.options
    extender = extender_port(given, prefix=EXTENDER)
    if options.version != "false":
        version.tell(raw=options.version == "raw")
        return 0
    with importing():
        from berth.runtime.event_loop import in_loop
        from berth.runtime.files import write_file
        from berth.scheduler.config.configz import to_yaml
        from berth.scheduler.shards.slots import Slots
        from berth.service.scheduler_process import run_scheduler

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
        adjust=partial(kube_scheduler.apply_flags, options=options),
    )
    loaded = source.load()
    if options.write_config_to:
        with naming_file("--write-config-to", options.write_config_to):
            write_file(Path(options.write_config_to), to_yaml(loaded[0]))
        return 0
    shards = None
    if given.shards is not None:
        shards = Slots(given.shards, given.shard_label or "", given.shard_pools)
    with importing():  # here, for it takes long: not in a turn of the event loop
        if options.secure_serving.secure_port:
            import berth.service.secure_port
        if extender is not None:
            import berth.service.extender_port  # noqa: F401
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
            shards=shards,
            pool=given.shard_pool,
        )
    )
