"""Configurations that decide: the one a question names, and the one it is compared with."""

from typing import NamedTuple

from pydantic.alias_generators import to_camel

from berth.insight.whatif.manifests import QuestionError
from berth.insight.whatif.question import Question
from berth.insight.whatif.snapshot import Snapshot
from berth.scheduler.config.load import default_configuration, emulating, from_object, load
from berth.scheduler.config.presets import preset
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.scheduler_state import SchedulerState
from berth.scheduler.profile.build import Registry, args_models
from berth.scheduler.profile.score_weights import with_score_weights


class Decider(NamedTuple):
    """A scheduler that a question is asked."""

    config: KubeSchedulerConfiguration
    state: SchedulerState | None
    """What it has come to so far, if it is that of the snapshot. What one configuration has come to
    says little to another; but weights have no part in it.
    """


def decider(
    question: Question, snapshot: Snapshot, registry: Registry, *, prefix: str = ""
) -> Decider:
    """Return who answers *question*, in the names of whose fields errors have *prefix*.

    Raises QuestionError or ConfigError; each names the field.
    """

    def field(name: str) -> str:
        return to_camel(f"{prefix}_{name}") if prefix else name

    models, adjust = args_models(registry), emulating(question.emulated_version)
    if question.preset is not None:
        text = preset(question.preset)
        source = f"{field('preset')} {question.preset}"
        config = load(text, source=source, args_models=models, adjust=adjust)
    else:
        written = snapshot.config if question.config is None else question.config
        config = (
            default_configuration(models, adjust=adjust)
            if written is None
            else from_object(written, source=field("config"), args_models=models, adjust=adjust)
        )
    if question.weights:
        config = with_score_weights(config, registry, question.weights, source=field("weights"))
    profiles = [profile.scheduler_name for profile in config.profiles]
    if question.profile and question.profile not in profiles:
        known = ", ".join(profiles)
        raise QuestionError(f"{field('profile')}: {question.profile!r}: must be one of {known}")
    is_snapshots = question.config is None and question.preset is None
    is_snapshots &= not question.emulated_version
    return Decider(config, snapshot.scheduler if is_snapshots else None)


def as_compared(question: Question) -> Question:
    """Return *question* as the configuration is asked it that it is compared with."""
    changes = {
        "weights": question.compare_weights,
        "profile": question.compare_profile or question.profile,
        "emulated_version": question.compare_emulated_version or question.emulated_version,
        "find_nodes": None,
        "find_removable": None,
    }
    if question.compare_config is not None or question.compare_preset is not None:
        changes |= {"config": question.compare_config, "preset": question.compare_preset}
    return question.model_copy(update=changes)
