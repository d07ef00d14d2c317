"""``docs/reference/cli.md``: every command with its flags, as argparse knows them."""

import argparse
from collections.abc import Iterator

from berth import cli
from berth.cli.completion import parser_for
from docs.generate import markdown

INTRODUCTION = """\
`berth COMMAND --help` prints the same. The page of each task explains the flags it uses: start with
the [quick start](../quickstart.md). `kubectl berth COMMAND` is the same as `berth COMMAND`."""

STATUS = (
    ("0", "The command did what you asked."),
    ("1", "The answer is no, or an operation failed: a pod has no node, a probe fails."),
    ("2", "Wrong usage or configuration, or no scheduler answers."),
    ("130", "Interrupted with Ctrl-C."),
)


def page() -> str:
    commands = [(name, does) for name, does in cli.COMMANDS.items()]
    overview = markdown.table(
        ("Command", "Purpose"),
        [(f"[`berth {name}`](#berth-{name})", markdown.plain(does)) for name, does in commands],
    )
    sections = [
        section
        for name, does in commands
        for section in _sections(f"berth {name}", parser_of(name), does)
    ]
    return markdown.page(
        "Command line",
        INTRODUCTION,
        overview,
        "## Exit status",
        markdown.table(("Status", "Meaning"), STATUS),
        *sections,
        source="berth.cli",
    )


def parser_of(command: str) -> argparse.ArgumentParser:
    """Return the parser that ``berth COMMAND --help`` prints."""
    parser = parser_for([command], cli.COMMANDS)
    assert parser is not None
    return parser


def _sections(name: str, parser: argparse.ArgumentParser, does: str) -> Iterator[str]:
    yield f"{'#' * (len(name.split()))} {name}"
    yield _sentence(does)
    if parser.description:
        yield markdown.plain(parser.description)
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        commands = [a for a in actions if isinstance(a, argparse._SubParsersAction)]
        flags = [a for a in actions if a not in commands and not is_help(a)]
        if flags:
            titled = group.title not in ("options", "positional arguments")
            if titled:
                yield f"**{_sentence(group.title or '')}**"
            if titled and group.description:
                yield markdown.plain(group.description)
            first = "Argument" if group.title == "positional arguments" else "Flag"
            yield markdown.table((first, "Meaning"), [_row(action) for action in flags])
        for each in commands:
            helps = {choice.dest: choice.help or "" for choice in each._choices_actions}
            for sub, inner in each.choices.items():
                yield from _sections(f"{name} {sub}", inner, helps[sub])


def _row(action: argparse.Action) -> tuple[str, str]:
    names = ", ".join(action.option_strings)
    given = "" if action.nargs == 0 else value(action)
    text = action.help or ""
    return markdown.code(f"{names} {given}".strip()), markdown.plain(expanded(action, text))


def value(action: argparse.Action) -> str:
    """Return what stands for the value of a flag, or for an argument."""
    if isinstance(action.metavar, str):
        name = action.metavar
    elif action.choices:
        name = "{" + ",".join(map(str, action.choices)) + "}"
    else:
        name = action.dest.upper() if action.option_strings else action.dest
    return f"{name}..." if action.nargs in ("+", "*") else name


def expanded(action: argparse.Action, text: str) -> str:
    """Return the help with ``%(default)s`` and the like filled in, as argparse does."""
    return text % {**vars(action), "prog": "berth"} if text else ""


def is_help(action: argparse.Action) -> bool:
    return isinstance(action, argparse._HelpAction)


def _sentence(text: str) -> str:
    return markdown.plain(f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}")
