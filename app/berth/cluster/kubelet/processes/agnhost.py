"""``agnhost``, the image of Kubernetes's end-to-end suite: some of its commands."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from berth.cluster.kubelet.processes.process import forever
from berth.cluster.kubelet.processes.shell import (
    HttpAnswer,
    HttpRequest,
    Server,
    Shell,
    Steps,
    Streams,
)
from berth.runtime.duration import Duration

NOT_FOUND: Final = HttpAnswer("404 page not found\n", 404)
VERBS: Final = ("GET", "PUT", "POST")


def flags(words: list[str]) -> dict[str, str]:
    """Return the flags among *words*, by name; dashes in names as given."""
    found = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("-"):
            name, equals, value = word.lstrip("-").partition("=")
            if not equals and rest and not rest[0].startswith("-"):
                value = rest.pop(0)
            found[name] = value
    return found


def static(shell: Shell, root: str) -> Server:
    """Return a server of the files below *root*."""

    def answer(request: HttpRequest) -> HttpAnswer:
        path = f"{root}/{request.path.strip('/')}".rstrip("/") or "/"
        if shell.files.is_folder(path):
            path = f"{path.rstrip('/')}/index.html"
        try:
            text = shell.files.read(path)
        except OSError:
            return NOT_FOUND
        is_page = path.endswith(".html")
        return HttpAnswer(text, 200, "text/html" if is_page else "text/plain; charset=utf-8")

    return answer


def _hostname(shell: Shell) -> Server:
    return lambda _request: HttpAnswer(shell.variables["HOSTNAME"])


def _netexec(shell: Shell) -> Server:
    def answer(request: HttpRequest) -> HttpAnswer:
        match request.path.strip("/").lower():
            case "":
                now = datetime.fromtimestamp(shell.clock(), UTC)
                return HttpAnswer(f"NOW: {now:%Y-%m-%d %H:%M:%S} +0000 UTC")
            case "hostname":
                return HttpAnswer(shell.variables["HOSTNAME"])
            case "healthz":
                return HttpAnswer("")
            case "echo":
                code = request.query.get("code", "")
                return HttpAnswer(
                    request.query.get("msg", ""), int(code) if code.isdigit() else 200
                )
        return NOT_FOUND

    return answer


def _serves(
    make: Callable[[Shell], Server], flag: str, port: int
) -> Callable[[Shell, list[str], Streams], Steps]:
    def command(shell: Shell, words: list[str], streams: Streams) -> Steps:
        listening = int(flags(words).get(flag, port))
        shell.servers[listening] = make(shell)
        streams.err(f"Serving on port {listening}.\n")
        return forever()

    return command


def _pause(_shell: Shell, _words: list[str], streams: Streams) -> Steps:
    streams.out("Paused\n")
    return forever()


def _entrypoint_tester(_shell: Shell, words: list[str], streams: Streams) -> int:
    streams.out(f"[{' '.join(words)}]\n")
    return 0


def _logs_generator(shell: Shell, words: list[str], streams: Streams) -> Steps:
    given = flags(words)
    total = int(given.get("log-lines-total") or given.get("t") or 0)
    seconds = Duration.parse(given.get("run-duration") or given.get("d") or "1s").seconds
    if total <= 0:
        streams.err("Invalid total number of lines\n")
        return 255
    for number in range(total):
        now = datetime.fromtimestamp(shell.clock(), UTC)
        verb, namespace = (
            VERBS[shell.rng.randrange(3)],
            ("ns", "default", "kube-system")[shell.rng.randrange(3)],
        )
        streams.err(
            f"I{now:%m%d %H:%M:%S.%f}       1 logs_generator.go:76] {number} {verb} "
            f"/api/v1/namespaces/{namespace}/pods/{shell.rng.getrandbits(16):x} "
            f"{shell.rng.randrange(200, 600)}\n"
        )
        yield seconds / total
    return 0


def _mounttest(shell: Shell, words: list[str], streams: Streams) -> Steps:
    given = flags(words)
    for name in ("file_content", "file_content_in_loop"):
        until = shell.clock() + float(given.get("retry_time") or 180)
        while path := given.get(name):
            try:
                streams.out(f'content of file "{path}": {shell.files.read(path)}\n')
            except OSError:
                streams.out(f"Error reading file {path}: open {path}: no such file or directory\n")
            if not name.endswith("loop") or shell.clock() >= until:
                break
            yield 1.0
    return 0


SUBCOMMANDS: Final[dict[str, Callable[[Shell, list[str], Streams], int | Steps]]] = {
    "pause": _pause,
    "netexec": _serves(_netexec, "http-port", 8080),
    "serve-hostname": _serves(_hostname, "port", 9376),
    "test-webserver": _serves(lambda shell: static(shell, ""), "port", 80),
    "entrypoint-tester": _entrypoint_tester,
    "logs-generator": _logs_generator,
    "mounttest": _mounttest,
}


def agnhost(shell: Shell, words: list[str], streams: Streams) -> int | Steps:
    """``agnhost SUBCOMMAND``."""
    command = SUBCOMMANDS.get(words[1] if len(words) > 1 else "")
    if command is None:
        streams.err(f'Error: unknown command "{" ".join(words[1:2])}" for "app"\n')
        return 1
    return command(shell, words, streams)
