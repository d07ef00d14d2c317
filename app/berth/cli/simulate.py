"""``berth simulate``: what would be, on a snapshot or a cluster; and recorded sequences of pods."""

import argparse
import logging
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from berth.cli import importing
from berth.cli.flags.configuration import add_plugin_flags, configuration_document, known_plugins
from berth.cli.flags.proof import add_proof_flags, limits
from berth.cli.flags.running_scheduler import CREDENTIALS, add_scheduler_flags, scheduler
from berth.cli.flags.versions import add_emulated_version
from berth.runtime import log
from berth.runtime.terminal import (
    DOCUMENTS,
    UsageError,
    note,
    positive,
    program,
    say,
    say_document,
)
from berth.scheduler.config.presets import PRESETS

if TYPE_CHECKING:
    from berth.insight.certificate.certificate import Certificate
    from berth.insight.whatif.answer import Answer
    from berth.insight.whatif.question import Question
    from berth.insight.whatif.snapshot import Snapshot
    from berth.scheduler.profile.build import Registry
    from berth.service.plugin_sources import KnownPlugins


LONGEST_WEIGHT: Final = 10
"""Digits; what is too large nevertheless, the question refuses."""
FITS, DOES_NOT_FIT = 0, 1
"""The exit statuses of an answer."""
STDIN: Final = "-"
PIPE_WIDTH: Final = 200
"""Columns of a table that goes to no terminal."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    given = parser.parse_args(argv)
    asks = given.server or given.kubeconfig
    if sum(source is not None for source in (given.snapshot, asks, given.source)) > 1:
        parser.error("--snapshot, --server, --kubeconfig and -f exclude each other")
    if (given.source is None) != (given.target is None):
        parser.error("-f requires -o, and -o requires -f")
    for flag in ("", "compare_"):
        if getattr(given, f"{flag}config") and getattr(given, f"{flag}preset"):
            spelled = flag.replace("_", "-")
            parser.error(f"--{spelled}preset and --{spelled}config: give one of them")
    if given.replicas is not None and not (given.template or given.like):
        parser.error("--replicas requires --template or --like")
    if given.count is not None and not given.add_nodes:
        parser.error("--count requires --add-nodes")
    if given.prove and not given.repack:
        parser.error("--prove requires --repack")
    if given.prove and (given.server or (given.snapshot is None and given.kubeconfig is None)):
        parser.error("--prove requires --snapshot or --kubeconfig, without --server")
    if given.prove and given.profile:
        parser.error("--prove and --profile exclude each other")
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("simulate"),
        allow_abbrev=False,
        description="Answer what-if questions. The exit status is 0 if all pods have a node, 1"
        " if some do not, and 2 for an error. TYPE is a file with a Node, or the"
        " name of a node to copy.",
    )
    where = parser.add_argument_group(
        "the cluster",
        "By default the cluster of a running scheduler, found as berth explain finds it.",
    )
    where.add_argument(
        "--snapshot", type=Path, metavar="FILE",
        help="read a snapshot, or a List from `kubectl get -o json`, from this file; .gz is"
        " supported",
    )  # fmt: skip
    add_scheduler_flags(
        where,
        kubeconfig=f"with --server: {CREDENTIALS}. Without: list from this API"
        " server, and use the default configuration",
    )
    add_plugin_flags(parser)
    ask = parser.add_argument_group("what if")
    ask.add_argument(
        "--pod", type=Path, action="append", default=[], metavar="FILE",
        help="place these Pods; other objects in the file are used as with --template",
    )  # fmt: skip
    ask.add_argument(
        "--template", type=Path, action="append", default=[], metavar="FILE",
        help="place the pods of these Deployments, StatefulSets, DaemonSets, Jobs and so on, or"
        " copies of a Pod; the file may contain any objects, such as the output of helm"
             " template; - reads standard input",
    )  # fmt: skip
    ask.add_argument(
        "--like", action="append", default=[], metavar="NAMESPACE/NAME",
        help="place copies of this pod of the cluster",
    )  # fmt: skip
    ask.add_argument(
        "--replicas", type=positive, metavar="N",
        help="number of replicas for each --template except DaemonSets, and of copies of --like",
    )  # fmt: skip
    ask.add_argument(
        "-n", "--namespace", default="", metavar="NAME",
        help="namespace of objects in --pod and --template without one; default: default",
    )  # fmt: skip
    ask.add_argument(
        "--no-pending", action="store_true", help="ignore pods that are already pending"
    )
    ask.add_argument("--add-nodes", metavar="TYPE", help="add nodes")
    ask.add_argument(
        "--count", type=positive, metavar="N", help="number of nodes to add; default: 1"
    )
    ask.add_argument(
        "--find-nodes", metavar="TYPE", help="find how many of these nodes are missing"
    )
    for flag, does in (
        ("remove-node", "remove nodes and place their pods elsewhere"),
        ("cordon-node", "cordon nodes"),
    ):
        ask.add_argument(
            f"--{flag}", action="append", default=[], metavar="NAME",
            help=f"{does}; accepts NAME,NAME and patterns such as node-*",
        )  # fmt: skip
        ask.add_argument(
            f"--{flag}-selector", default="", metavar="SELECTOR",
            help="also the nodes with these labels, as kubectl drain --selector",
        )  # fmt: skip
    ask.add_argument(
        "--remove-pod", action="append", default=[], metavar="NAME", help="remove this pod"
    )
    ask.add_argument(
        "--find-removable", nargs="?", const="", metavar="NAME",
        help="find the nodes that can go, among these or among all; names as for --remove-node",
    )  # fmt: skip
    ask.add_argument(
        "--find-removable-selector",
        default="",
        metavar="SELECTOR",
        help="find the nodes that can go, among those with these labels",
    )
    ask.add_argument(
        "--repack", action="store_true",
        help="place all movable running pods again, as if they were not running",
    )  # fmt: skip
    add_proof_flags(ask, "with --repack")
    ask.add_argument("--config", type=Path, metavar="FILE", help="use this configuration")
    add_emulated_version(ask)
    add_emulated_version(ask, flag="--compare-emulated-version", text="compare with this release")
    ask.add_argument("--compare-config", type=Path, metavar="FILE", help="compare with this one")
    ask.add_argument("--preset", choices=PRESETS, help="use this preset")
    ask.add_argument("--compare-preset", choices=PRESETS, help="compare with this one")
    for flag, does in (("weight", "give"), ("compare-weight", "compare with giving")):
        ask.add_argument(
            f"--{flag}", type=_weight, action="append", default=[], metavar="[PROFILE/]PLUGIN=N",
            help=f"{does} this weight to the scores of this plugin; with 0 it does not score;"
            " default of PROFILE: default-scheduler",
        )  # fmt: skip
    ask.add_argument(
        "--profile", default="", metavar="NAME",
        help="use this profile for the pods in question, instead of their spec.schedulerName",
    )  # fmt: skip
    ask.add_argument(
        "--compare-profile", default="", metavar="NAME", help="compare with this profile"
    )
    ask.add_argument(
        "--preemption", action="store_true", help="allow the eviction of pods of lower priority"
    )
    parser.add_argument(
        "--seed", type=int,
        help="choose among the best nodes at random, with this seed; default: the first by name",
    )  # fmt: skip
    parser.add_argument(
        "--output", choices=["table", *DOCUMENTS], default="table", help="output format"
    )
    recorded = parser.add_argument_group("recorded sequences")
    recorded.add_argument(
        "-f", dest="source", type=Path, metavar="IN",
        help="read scenarios with lists of pods, as JSON lines, from this file; .gz is supported",
    )  # fmt: skip
    recorded.add_argument(
        "-o", dest="target", type=Path, metavar="OUT",
        help="write the assignments to this file, as JSON lines",
    )  # fmt: skip
    return parser


def _weight(text: str) -> tuple[str, str, int]:
    """Return profile, empty if none is named, plugin and weight."""
    name, _, number = text.rpartition("=")
    profile, slash, plugin = name.rpartition("/")
    if not plugin or (slash and not profile):
        raise argparse.ArgumentTypeError(f"{text!r} must be [PROFILE/]PLUGIN=N")
    if not (number.isascii() and number.isdecimal() and len(number) <= LONGEST_WEIGHT):
        raise argparse.ArgumentTypeError(f"{text!r}: {number!r} must be a number, 0 or more")
    return profile, plugin, int(number)


def run(given: argparse.Namespace) -> int:
    log.setup(logging.ERROR)
    if given.source is not None:
        return _recorded(given)
    asked = _question(given)
    if given.prove:
        answer, certificate = _prove(given, asked)
    else:
        answer, certificate = _ask(given, asked), None
    if given.output in DOCUMENTS:
        say_document(_as_json(answer, certificate), given.output)
    else:
        _print(answer, certificate)
    return FITS if answer.fits else DOES_NOT_FIT


def _recorded(given: argparse.Namespace) -> int:
    with importing():
        from berth.insight.offline.files import answer_all
        from berth.insight.offline.simulate import simulate
        from berth.scheduler.config.load import emulating

    registry = known_plugins(given).registry
    adjust = emulating(given.emulated_version)
    problems = answer_all(
        given.source,
        given.target,
        lambda found: simulate(found, registry, seed=given.seed, adjust=adjust),
    )
    if problems:
        raise UsageError("\n".join(problems))
    return 0


# The question.


def _question(given: argparse.Namespace) -> dict[str, Any]:
    """Return the question as the server takes it."""

    pods, templates = list[Any](), list[Any]()
    for manifest in _manifests(given.pod, namespace=given.namespace):
        if manifest["kind"] == "Pod":
            pods.append(manifest)
        else:
            templates.append({"manifest": manifest})
    for manifest in _manifests(given.template, namespace=given.namespace):
        counted = manifest["kind"] != "DaemonSet"
        templates.append({"manifest": manifest, "replicas": given.replicas if counted else None})
    templates += ({"like": name, "replicas": given.replicas} for name in given.like)
    asked: dict[str, Any] = {
        "pods": pods,
        "templates": templates,
        "includePending": not given.no_pending,
        "removeNodes": _nodes(given.remove_node, given.remove_node_selector),
        "cordonNodes": _nodes(given.cordon_node, given.cordon_node_selector),
        "removePods": {"names": given.remove_pod},
        "preemption": given.preemption,
    }
    if given.find_removable is not None or given.find_removable_selector:
        names = [given.find_removable] if given.find_removable else []
        asked["findRemovable"] = _nodes(names, given.find_removable_selector)
    if given.repack:
        asked["repack"] = True
    if given.add_nodes is not None:
        asked["addNodes"] = [_node_type(given.add_nodes) | {"count": given.count or 1}]
    if given.find_nodes is not None:
        asked["findNodes"] = _node_type(given.find_nodes)
    if given.seed is not None:
        asked["seed"] = given.seed
    asked |= {
        "preset": given.preset,
        "profile": given.profile,
        "emulatedVersion": given.emulated_version,
        "compareEmulatedVersion": given.compare_emulated_version,
        "weights": _weights(given.weight),
        "comparePreset": given.compare_preset,
        "compareProfile": given.compare_profile,
        "compareWeights": _weights(given.compare_weight),
    }
    for name, path in (("config", given.config), ("compareConfig", given.compare_config)):
        if path is not None:
            asked[name] = configuration_document(path)
    return asked


def _manifests(paths: Iterable[Path], *, namespace: str) -> Iterator[Any]:
    """Yield the objects of files; those that name no namespace are in *namespace*."""
    from berth.kube import manifests

    for path in paths:
        if str(path) == STDIN:
            parsed = manifests.parse(sys.stdin.read(), source="stdin")
        else:
            parsed = manifests.read(path)
        for manifest in parsed:
            meta = manifest.setdefault("metadata", {}) if namespace else None
            if isinstance(meta, dict) and not meta.get("namespace"):
                meta["namespace"] = namespace
            yield manifest


def _nodes(names: Iterable[str], selector: str) -> dict[str, Any]:
    """Return a choice of nodes; a name may be several with commas between them."""
    apart = [name.strip() for listed in names for name in listed.split(",")]
    return {"names": [name for name in apart if name], "selector": selector}


def _weights(given: Collection[tuple[str, str, int]]) -> dict[str, dict[str, int]]:
    if not given:
        return {}
    from berth.scheduler.config.defaults import DEFAULT_SCHEDULER_NAME  # here: it takes 0.1 s

    weights: dict[str, dict[str, int]] = {}
    for profile, plugin, weight in given:
        weights.setdefault(profile or DEFAULT_SCHEDULER_NAME, {})[plugin] = weight
    return weights


def _node_type(type_: str) -> dict[str, Any]:
    from berth.kube import manifests

    path = Path(type_)
    if not path.exists():
        return {"like": type_}
    objects = list(manifests.read(path))
    if len(objects) != 1:
        raise UsageError(f"{path}: one Node is needed, got {len(objects)} objects")
    return {"manifest": objects[0]}


# Who answers.


def _ask(given: argparse.Namespace, asked: dict[str, Any]) -> "Answer":
    if given.server is not None or (given.snapshot is None and given.kubeconfig is None):
        return _ask_scheduler(given, asked)
    return _simulate(given, *_here(given, asked))


def _here(
    given: argparse.Namespace, asked: dict[str, Any]
) -> "tuple[Question, Snapshot, Registry]":
    """Return what is needed to answer in this process."""
    with importing():
        from pydantic import ValidationError

        from berth.insight.whatif.question import Question
        from berth.insight.whatif.snapshot import load
        from berth.runtime.memory import collect_seldom
        from berth.scheduler.config.model_errors import model_problems

    registry = _plugins(given, asked).registry
    try:
        question = Question.model_validate(asked)
    except ValidationError as exc:
        raise UsageError("\n".join(model_problems(exc))) from exc
    collect_seldom()
    if given.snapshot is not None:
        return question, load(given.snapshot), registry
    from berth.service.listed_snapshot import list_cluster

    return question, list_cluster(given.kubeconfig, context=given.context), registry


def _simulate(
    given: argparse.Namespace, question: "Question", snapshot: "Snapshot", registry: "Registry"
) -> "Answer":
    from berth.insight.whatif.course import Course, each_second
    from berth.insight.whatif.engine import answer
    from berth.runtime.clock import RealClock

    return answer(
        question, snapshot, registry, course=Course(tell=each_second(_progress, RealClock()))
    )


def _prove(given: argparse.Namespace, asked: dict[str, Any]) -> "tuple[Answer, Certificate]":
    """Answer, and say how far the number of nodes is from the best."""
    from berth.insight.certificate.repacking import prove_repacking

    question, snapshot, registry = _here(given, asked)
    answered = _simulate(given, question, snapshot, registry)
    proof = limits(given)
    assert proof is not None, "--prove was given"
    return answered, prove_repacking(question, snapshot, registry, proof)


def _ask_scheduler(given: argparse.Namespace, asked: dict[str, Any]) -> "Answer":
    with importing():
        from berth.service.scheduler_client import AskError, ask_to_simulate

    try:
        return ask_to_simulate(scheduler(given), asked, _progress)
    except AskError as exc:
        if given.server is not None:
            raise
        raise UsageError(f"{exc}; otherwise pass --server, --snapshot or --kubeconfig") from exc


def _progress(told: Mapping[str, Any]) -> None:
    """Say how far it is, to people only."""
    if sys.stderr.isatty():
        what = "nodes tried" if told.get("stage") == "findRemovable" else "pods decided"
        note(f"{told.get('stage')}: {told.get('done')} of {told.get('of')} {what}")


def _plugins(given: argparse.Namespace, asked: dict[str, Any]) -> "KnownPlugins":
    """Return the plugins that are to be known; in what is *asked* they get their own names."""
    from berth.scheduler.config.plugin_references import replace_references

    known = known_plugins(given)
    for name, path in (("config", given.config), ("compareConfig", given.compare_config)):
        if path is not None:
            known = known.referred_in(asked[name], source=str(path))
            replace_references(asked[name], known.aliases)
    return known


def _as_json(answer: "Answer", certificate: "Certificate | None") -> str:
    text = answer.model_dump_json(by_alias=True)
    if certificate is None:
        return text
    return f'{text[:-1]},"certificate":{msgspec.json.encode(certificate).decode()}}}'


def _print(answer: "Answer", certificate: "Certificate | None") -> None:
    # Only then: JSON should not wait for it.
    from berth.insight.certificate.certificate import lines
    from berth.insight.whatif.tables import render
    from berth.runtime.tables import show

    show(render(answer), pipe_width=PIPE_WIDTH)
    for line in lines(certificate) if certificate is not None else ():
        say(line)
