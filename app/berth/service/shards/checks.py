"""Which configurations shards can follow."""

from collections.abc import Iterator

from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.types import KubeSchedulerConfiguration


def check_shards(config: KubeSchedulerConfiguration, *, is_recorded: bool = False) -> None:
    """Raise ConfigError if several replicas could not keep what *config* promises."""
    problems = [*_problems(config)]
    if is_recorded:
        problems.append("a recording does not say which nodes were whose: leave out --record")
    if problems:
        raise ConfigError("--shards", problems)


def _problems(config: KubeSchedulerConfiguration) -> Iterator[str]:
    if not config.leader_election.leader_elect:
        yield "needs the Leases of leader election: leave out --leader-elect=false"
    if config.extenders:
        yield "extenders decide about all nodes, not about those of one replica"
    for profile in config.profiles:
        defaults = profile.args("PodTopologySpread").get("defaultConstraints", ())
        if any(constraint.get("whenUnsatisfiable") == "DoNotSchedule" for constraint in defaults):
            yield (
                f"profile {profile.scheduler_name}: default constraints of PodTopologySpread may"
                " not be DoNotSchedule: pods do not say that they have them"
            )
