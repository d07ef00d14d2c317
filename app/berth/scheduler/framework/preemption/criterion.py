"""What is looked at in the choice between candidates."""

from enum import StrEnum


class Criterion(StrEnum):
    """What candidates are told apart by, one after the other (spec §6.6)."""

    PDB_VIOLATIONS = "PDBViolations"
    """Fewest victims that their disruption budgets would rather keep."""
    HIGHEST_PRIORITY = "HighestPriority"
    """Lowest priority of the most important victim."""
    SUM_OF_PRIORITIES = "SumOfPriorities"
    """Smallest sum of the priorities of the victims, each of them plus 2^31."""
    NUM_VICTIMS = "NumVictims"
    """Fewest victims."""
    START_TIME = "StartTime"
    """Of the victims with the highest priority, the one that started first started latest."""
