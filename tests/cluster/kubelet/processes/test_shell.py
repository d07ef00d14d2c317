"""What scripts of containers write, how long they run, and how they end."""

import random
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.kubelet.processes.files import Files, Volume
from berth.cluster.kubelet.processes.images import KNOWN, is_understood
from berth.cluster.kubelet.processes.process import MOST_CHARACTERS, MOST_LINES, Log, Process
from berth.cluster.kubelet.processes.shell import Input, Shell
from berth.cluster.kubelet.processes.syntax import parse

T0 = 1_767_225_600.0  # 2026-01-01


class Run:
    """A script that runs by the clock; times are seconds since its start."""

    def __init__(
        self, script: str, stdin: str = "", *, is_open: bool = False, **variables: str
    ) -> None:
        self.out = self.err = ""
        self.data = Volume({"greeting": "hello\n"})
        files = Files(Volume({"tmp/old": "1\n2\n3\n"}), {"/data": (self.data, "")})
        variables = {"HOSTNAME": "web-0", **variables}
        shell = Shell(files, KNOWN, lambda: 0.0, random.Random(1), dict(variables), set(variables))
        self.process = Process(
            shell,
            ["/bin/sh", "-c", script],
            T0,
            out=self._write_out,
            err=self._write_err,
            stdin=Input(stdin, is_open),
        )
        self.at(0)

    def _write_out(self, _time: float, text: str) -> None:
        self.out += text

    def _write_err(self, _time: float, text: str) -> None:
        self.err += text

    def at(self, seconds: float) -> "Run":
        self.process.advance(T0 + seconds)
        return self

    def to_its_end(self) -> tuple[float, int | None]:
        """Return when it has ended, or sleeps for good, and its exit code."""
        seconds = 0.0
        while (due := self.process.due) < inf:
            seconds = due - T0
            self.process.advance(due)
        return seconds, self.process.exit_code


@pytest.mark.parametrize(
    ("script", "out"),
    [
        pytest.param("echo a   'b  c' \"d $X\"", "a b  c d x y\n", id="quotes"),
        pytest.param("echo $X; echo \"$X\" '$X' \\$X", "x y\nx y $X $X\n", id="variables"),
        pytest.param("echo ${NO:-none} ${X:+set} ${Y:=y}$Y", "none set yy\n", id="operators"),
        pytest.param(
            "A=1 env; echo [$A]", "HOSTNAME=web-0\nX=x y\nA=1\n[]\n", id="only for the command"
        ),
        pytest.param("tail -n1 /tmp/old; seq 2; echo hi | cat", "3\n1\n2\nhi\n", id="pipelines"),
        pytest.param("sh -c 'echo $0 $1 $@' a b c; echo $?", "a b b c\n0\n", id="arguments"),
        pytest.param("false; echo $?; X=$(exit 3); echo $?", "1\n3\n", id="the last exit code"),
        pytest.param("echo $((2 + 3 * 4 / 5)) $((-7 / 2)) $((7 % 3 == 1))", "4 -3 1\n", id="sums"),
        pytest.param("i=0; while [ $i -lt 3 ]; do echo -n $i; i=$((i+1)); done", "012", id="while"),
        pytest.param(
            "for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done", "1\n3\n", id="for"
        ),
        pytest.param("for f in /tmp/*; do echo $f; done; echo *.no", "/tmp/old\n*.no\n", id="glob"),
        pytest.param("echo $(echo a; echo b) `hostname`", "a b web-0\n", id="substitution"),
        pytest.param("(X=z; echo $X); echo $X", "z\nx y\n", id="a subshell has its own variables"),
        pytest.param("! false && echo a || echo b; false || echo c", "a\nc\n", id="and, or, not"),
        pytest.param("no-such; echo $?", "127\n", id="no such command"),
        pytest.param("[[ -r /data/greeting && 1 == 1 ]] || echo no", "no\n", id="&& ends [["),
        pytest.param("if test -e /no; then echo a; elif true; then echo b; fi", "b\n", id="elif"),
        pytest.param(
            "echo a > /tmp/f; echo b >> /tmp/f; cat /tmp/f; ls /tmp", "a\nb\nf\nold\n", id="files"
        ),
        pytest.param(
            "cat /no 2> /tmp/e; cat < /tmp/e",
            "cat: can't open '/no': No such file or directory\n",
            id="errors",
        ),
        pytest.param("printf '%s-%03d\\n' a 7 b 8", "a-007\nb-008\n", id="printf"),
        pytest.param("mkdir -p /a/b && cd /a/b && pwd && cd .. && pwd", "/a/b\n/a\n", id="folders"),
        pytest.param(
            "mv -v /data/greeting /tmp/ && ls /data /tmp",
            "'/data/greeting' -> '/tmp/greeting'\ngreeting\nold\n",
            id="mv",
        ),
        pytest.param("date +%Y-%m-%d; date +%s", f"2026-01-01\n{T0:.0f}\n", id="date"),
        pytest.param("mkdir -p /a/b; touch /a/b/c; find /a", "/a\n/a/b\n/a/b/c\n", id="find"),
        pytest.param("cat", "what came in\n", id="the input"),
        pytest.param(
            "set -e; false || true; if false; then :; fi; echo on; false; echo off",
            "on\n",
            id="set -e",
        ),
    ],
)
def test_what_is_written(script: str, out: str) -> None:
    assert Run(script, stdin="what came in\n", X="x y").out == out


@pytest.mark.parametrize(
    ("script", "want"),
    [
        pytest.param("exit 3", (0.0, 3), id="exit"),
        pytest.param("false", (0.0, 1), id="the last command"),
        pytest.param("sleep 2; sleep 0.5 && exit 4", (2.5, 4), id="sleep"),
        pytest.param("sleep 1m", (60.0, 0), id="minutes"),
        pytest.param("until [ -f /tmp/x ]; do sleep 1; touch /tmp/x; done", (1.0, 0), id="until"),
        pytest.param("sleep 3 & sleep 1; wait; exit 2", (3.0, 2), id="in the background"),
        pytest.param("trap 'exit 7' EXIT; sleep 1", (1.0, 7), id="a trap at the end"),
        pytest.param("if true", (0.0, 2), id="no script"),
        pytest.param("exec sleep 2", (2.0, 0), id="exec"),
        pytest.param("if false; then exit 1; else exit 4; fi", (0.0, 4), id="else"),
        pytest.param("exit $((RANDOM / 32768))", (0.0, 0), id="random"),
        pytest.param("sleep infinity", (0.0, None), id="for good"),
    ],
)
def test_how_it_ends(script: str, want: tuple[float, int | None]) -> None:
    assert Run(script).to_its_end() == want


def test_a_busy_loop_takes_time() -> None:
    run = Run("while true; do :; done")
    assert run.process.exit_code is None
    assert T0 < run.process.due < inf


def test_a_signal_is_handled_when_somebody_sends_it() -> None:
    run = Run("trap 'echo bye; exit 5' TERM; while true; do echo on; sleep 1; done").at(2)
    assert run.process.handles("TERM")
    run.process.interrupt("TERM", T0 + 2.5)
    assert run.at(2.4).process.exit_code is None
    assert (run.at(3).out, run.process.exit_code) == ("on\non\non\nbye\n", 5)


def test_input_that_comes_later() -> None:
    run = Run("cat; echo end", is_open=True)
    run.process.feed("a", T0 + 1)
    assert run.at(1).out == "a"
    run.process.feed("b\n", T0 + 2, is_end=True)
    assert (run.at(2).out, run.process.exit_code) == ("ab\nend\n", 0)


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (["sleep", "5"], True),
        (["/bin/sh", "-c", "echo $(POD_NAME); exit 1"], True),
        (["sh", "-c", "exec my-server --port=1"], False),
        (["sh", "-c", "if true"], False),
        (["sh", "-c", "$COMMAND"], False),
        (["sh"], False),
        (["my-server"], False),
        (["/agnhost", "netexec"], True),
        (["/agnhost", "no-such"], False),
    ],
)
def test_what_is_understood(words: list[str], want: bool) -> None:
    assert is_understood(words) is want


ANY_TEXT = st.text(alphabet=st.sampled_from("ab \n;&|()<>{}$'\"\\`=*?#![]0"), max_size=40)
ANY_WORDS = st.lists(
    st.sampled_from(
        [
            *(
                "if",
                "then",
                "else",
                "fi",
                "while",
                "until",
                "do",
                "done",
                "for",
                "in",
                "break",
                "!",
            ),
            *(";", "\n", "&&", "||", "|", "&", "(", ")", "{", "}", "$((", "))", "$(", ">", "<"),
            *(
                "x=1",
                "$x",
                "${x:-",
                "$RANDOM",
                "'",
                '"',
                "/tmp/old",
                "/no",
                "-n",
                "-1",
                "%d",
                "nan",
            ),
            *("1", "-f", "of=x", "+%Y", "]", "EXIT", *sorted(KNOWN)),
        ]
    ),
    max_size=12,
).map(" ".join)


@given(ANY_TEXT | ANY_WORDS)
def test_any_text_is_a_script_or_none(text: str) -> None:
    try:
        parse(text)
    except SyntaxError:
        return
    run = Run(text)
    for seconds in range(5):
        run.at(seconds)
    assert run.process.exit_code is not None or run.process.due > T0 + 4


def test_a_log_is_bounded() -> None:
    log = Log()
    for number in range(30_000):
        log.write(T0, f"{number}\n" if number < 20_000 else "x" * 1000)
    log.end(T0)
    assert log.count > 20_000
    assert len(log.lines) <= MOST_LINES
    assert sum(len(line.text) for line in log.lines) <= MOST_CHARACTERS
