"""The file: rules that choose pods, and outcomes for their containers."""

from typing import Annotated, Any, Final, Literal, Self

import msgspec
from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from berth.cluster.kubelet.stages.distribution import Amount, Delay, Model
from berth.kube.objects.meta import LabelSelector
from berth.kube.objects.selectors import Selector, compile_selector

API_VERSION: Final = "berth.dev/v1alpha1"
KIND: Final = "Stages"

Profile = Literal["fast", "realistic", "chaotic"]
RoleName = Literal["Init", "Sidecar", "Main"]


def _selector(told: Any) -> Selector:
    try:
        return compile_selector(msgspec.convert(told, LabelSelector))
    except msgspec.ValidationError as exc:
        raise ValueError(str(exc)) from None


class Match(Model):
    """Which containers a rule is about: those of which all that is given here holds.

    ``*`` and ``?`` in names and images stand for any characters, and for one.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    namespaces: tuple[str, ...] = ()
    label_selector: Annotated[Selector | None, BeforeValidator(_selector)] = None
    annotations: dict[str, str] = Field(default_factory=dict)
    owners: tuple[str, ...] = ()
    """Kinds of the pod's controller, such as ``Job``."""
    images: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    """Names of containers."""
    roles: tuple[RoleName, ...] = ("Main",)


class Pull(Model):
    """How the image comes to a node that does not have it."""

    size: Amount = Amount(value=0.0)
    """Bytes. All nodes draw the same for an image."""
    rate: Amount = Amount(value=50e6)
    """Bytes per second."""
    duration: Delay | None = None
    """Instead of size by rate."""
    error: str = ""
    """Why it does not come."""


class Outcome(Model):
    """What happens to a container. What is not given stays as rules before have it."""

    name: str = ""
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """How often it is drawn, in proportion to the other outcomes of the rule."""
    failures: Annotated[int, Field(ge=1)] | None = None
    """For so many starts of a container; the next ones are as if there were no outcome."""
    pull: Pull | None = None
    create_delay: Delay | None = None
    """From having the image to running."""
    ready_delay: Delay | Literal["never"] | None = None
    """From running, and the initial delay of probes, to being ready."""
    run_duration: Delay | Literal["forever"] | None = None
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None
    oom_killed: bool = False
    """Exit code 137, reason OOMKilled."""
    liveness_fails: bool = False
    """At the end of its run, the kubelet kills it."""
    stop_duration: Delay | Literal["never", "hangs"] | None = None
    """From SIGTERM to its end. never: it is killed at the end of the grace period. hangs: not even
    then does it end."""
    usage: dict[str, Amount] = Field(default_factory=dict)
    """What the whole pod uses: by resource."""

    @field_validator("ready_delay", "run_duration", "stop_duration", mode="wrap")
    @classmethod
    def _word_or_delay(cls, told: Any, handler: Any, info: Any) -> Any:
        words = {
            "ready_delay": ("never",),
            "run_duration": ("forever",),
            "stop_duration": ("never", "hangs"),
        }[info.field_name]
        if told is None or told in words:
            return told
        return Delay.model_validate(told)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.oom_killed and (self.exit_code is not None or self.liveness_fails):
            raise ValueError("oomKilled has an exit code of its own: 137")
        return self


class Rule(Model):
    name: str = ""
    match: Match = Match()
    outcomes: tuple[Outcome, ...]
    """One of them is drawn for each pod."""

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Self:
        if not any(outcome.weight for outcome in self.outcomes):
            raise ValueError("at least one of outcomes needs a weight greater than 0")
        return self


class Stages(Model):
    """The rules apply in their order, after those of the profile; later ones win."""

    api_version: Literal["berth.dev/v1alpha1"] = API_VERSION
    kind: Literal["Stages"] = KIND
    profile: Profile = "fast"
    seed: int | None = None
    """The same seed and the same pods live the same; without it, each run is another."""
    rules: tuple[Rule, ...] = ()
