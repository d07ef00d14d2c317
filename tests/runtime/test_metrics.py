"""Instruments, and the words that become of them."""

import msgspec
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from berth.runtime.metrics import (
    Counters,
    Family,
    Histograms,
    Kind,
    Stability,
    exponential,
    go_float,
    metrics_pieces,
    metrics_text,
)
from tests.scheduler.metrics.reading import counted


class Only(Collector):
    """Exports one instrument."""

    def __init__(self, instrument: Counters | Histograms) -> None:
        self._instrument = instrument

    def collect(self) -> list[Metric]:
        return [self._instrument.collect()]


def registry_of(instrument: Counters | Histograms) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(Only(instrument))
    return registry


def text_of(instrument: Counters | Histograms, accept: str = "") -> str:
    text, _ = metrics_text(registry_of(instrument), accept)
    return text.decode()


def family(kind: Kind, *labels: str, buckets: tuple[float, ...] = ()) -> Family:
    return Family(
        name="things_total" if kind is Kind.COUNTER else "things",
        kind=kind,
        text="Things.",
        stability=Stability.BETA,
        labels=labels,
        buckets=buckets,
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (1, "1"),
        (0.001, "0.001"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1.5000000000000002e-05, "1.5000000000000002e-05"),
        (604800, "604800"),
        (999999, "999999"),
        (1000000, "1e+06"),
        (1048576, "1.048576e+06"),
        (2592000, "2.592e+06"),
        (1.5e12, "1.5e+12"),
        (1e100, "1e+100"),
    ],
)
def test_numbers_are_written_as_go_writes_them(number: float, text: str) -> None:
    assert go_float(number) == text


def test_exponential_bounds() -> None:
    assert exponential(1, 2, 5) == (1, 2, 4, 8, 16)


def test_an_observation_on_a_bound_is_below_it() -> None:
    histogram = Histograms(family(Kind.HISTOGRAM, buckets=(1, 2)))
    for value in (0.5, 1, 1.5, 2, 99):
        histogram.observe(value)
    assert text_of(histogram) == (
        "# HELP things [BETA] Things.\n"
        "# TYPE things histogram\n"
        'things_bucket{le="1"} 2.0\n'
        'things_bucket{le="2"} 4.0\n'
        'things_bucket{le="+Inf"} 5.0\n'
        "things_count 5.0\n"
        "things_sum 104.0\n"
    )


def test_counters_by_label() -> None:
    counter = Counters(family(Kind.COUNTER, "kind", "place"))
    counter.add("a", "x")
    counter.add("a", "x")
    counter.add("b", "x", amount=0.5)
    assert counted(registry_of(counter), "things_total") == {("a", "x"): 2, ("b", "x"): 0.5}


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        pytest.param((), "# HELP things_total [BETA] Things.\n"
                         "# TYPE things_total counter\n"
                         "things_total 0.0\n", id="without labels it starts at 0"),
        pytest.param(("kind",), "", id="with labels there is nothing before the first"),
    ],
)  # fmt: skip
def test_a_counter_that_never_counted(labels: tuple[str, ...], text: str) -> None:
    assert text_of(Counters(family(Kind.COUNTER, *labels))) == text


def test_open_metrics_on_request() -> None:
    counter = Counters(family(Kind.COUNTER))
    accept = "application/openmetrics-text; version=1.0.0, text/plain; q=0.5"
    text, content_type = metrics_text(registry_of(counter), accept)
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert text.decode().endswith("things_total 0.0\n# EOF\n")


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
def test_the_pieces_are_families_and_make_the_whole(accept: str) -> None:
    registry = CollectorRegistry()
    for name in ("a_total", "b_total", "c_total"):
        counters = Counters(msgspec.structs.replace(family(Kind.COUNTER, "kind"), name=name))
        if name != "b_total":
            counters.add("x")
        registry.register(Only(counters))
    pieces, _ = metrics_pieces(registry, accept)
    told = [piece.decode() for piece in pieces]

    assert ["a_total{" in told[0], "c_total{" in told[1]] == [True, True]
    assert told[2:] == (["# EOF\n"] if accept else [""])
    assert metrics_text(registry, accept)[0].decode() == "".join(told)
