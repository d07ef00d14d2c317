"""The grammar of the shell, as far as commands of containers use it (POSIX, XCU 2.10).

Not understood, so SyntaxError: functions, ``case``, here-documents, arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

OPERATORS: Final = ("&&", "||", ">>", ";", "&", "|", "(", ")", "<", ">", "\n")
REDIRECTING: Final = ("<", ">", ">>")
CLOSING: Final = ("then", "elif", "else", "fi", "do", "done", "}")
NOT_UNDERSTOOD: Final = ("case", "function", "select")
RUNNING_OTHERS: Final = ("exec", "env")
"""Commands that run what follows them."""
MOST_CHARACTERS: Final = 64 * 1024
MOST_DEPTH: Final = 50


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """``$name`` or ``${name}``, with an operator such as ``:-`` and its word."""

    name: str
    quoted: bool
    operator: str = ""
    word: "Word" = ()


@dataclass(frozen=True, slots=True)
class Substitution:
    script: "Script"
    quoted: bool


@dataclass(frozen=True, slots=True)
class Arithmetic:
    expression: "Word"
    quoted: bool = True


Part = Text | Parameter | Substitution | Arithmetic
Word = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Redirect:
    descriptor: int
    operator: str
    """One of REDIRECTING, or ``>&``."""
    word: Word


@dataclass(frozen=True, slots=True)
class Simple:
    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class If:
    branches: tuple[tuple["Script", "Script"], ...]
    """Conditions, and what follows; that of ``else`` is empty."""


@dataclass(frozen=True, slots=True)
class Loop:
    """``while``, or ``until`` the condition holds."""

    condition: "Script"
    body: "Script"
    until: bool


@dataclass(frozen=True, slots=True)
class For:
    name: str
    words: tuple[Word, ...]
    body: "Script"


@dataclass(frozen=True, slots=True)
class Group:
    """``{ ...; }``, or ``( ... )``, which has variables of its own."""

    body: "Script"
    is_subshell: bool


@dataclass(frozen=True, slots=True)
class Command:
    what: Simple | If | Loop | For | Group
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    commands: tuple[Command, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class AndOr:
    """Pipelines, each but the first with ``&&`` or ``||`` before it."""

    pipelines: tuple[tuple[str, Pipeline], ...]
    in_background: bool


Script = tuple[AndOr, ...]


@lru_cache(maxsize=1_000)
def parse(text: str) -> tuple[Script, Sequence[str | None]]:
    """Return the script in *text*, and the commands in it; None for one that an expansion gives.

    Raises SyntaxError if it is no script, or not understood.
    """
    if len(text) > MOST_CHARACTERS:
        raise SyntaxError("too long")
    commands: list[str | None] = []
    try:
        return _Parser(text, 0, commands).whole(), tuple(commands)
    except RecursionError:
        raise SyntaxError("too deep") from None


class _Parser:
    """A recursive-descent parser, one token ahead. A token is an operator, a word or the end."""

    def __init__(self, text: str, depth: int, commands: list[str | None]) -> None:
        if depth > MOST_DEPTH:
            raise SyntaxError("too deep")
        self._text = text
        self._at = 0
        self._depth = depth
        self._commands = commands
        self._operator = ""
        self._word: Word = ()
        self._next()

    def whole(self) -> Script:
        script = self.script()
        self.expect("")
        return script

    def inside_brackets(self) -> tuple[Script, int]:
        """Return a script that ends with a bracket, and how many characters that takes."""
        script = self.script()
        if self._operator != ")":
            raise SyntaxError("no closing )")
        return script, self._at

    # Tokens.

    def _next(self) -> None:
        text, at = self._text, self._at
        while at < len(text) and (text[at] in " \t" or text.startswith("\\\n", at)):
            at += 2 if text[at] == "\\" else 1
        if text[at : at + 1] == "#":
            at = (text + "\n").find("\n", at)
        self._at, self._operator, self._word = at, "", ()
        if text.startswith(("<<", "<(", ";;"), at):
            raise SyntaxError(f"{text[at : at + 2]} is not understood")
        for operator in OPERATORS:
            if text.startswith(operator, at):
                self._operator = operator
                self._at += len(operator)
                return
        parts: list[Part] = []
        while self._at < len(text) and text[self._at] not in " \t\n;&|<>()":
            parts += self._parts()
        self._word = tuple(parts)

    def _until(self, end: str, *, quoted: bool) -> list[Part]:
        """Read the parts up to *end*, and that."""
        parts: list[Part] = []
        while not self._text.startswith(end, self._at):
            if self._at >= len(self._text):
                raise SyntaxError(f"no closing {end}")
            parts += self._parts(quoted=quoted)
        self._at += len(end)
        return parts

    def _parts(self, *, quoted: bool = False) -> list[Part]:
        """Read what is in quotes, or one part: what follows a ``$``, or one character."""
        text, at = self._text, self._at
        following = text[at + 1 : at + 2]
        if text[at] == "'" and not quoted:
            end = self._find("'", at + 1)
            self._at = end + 1
            return [Text(text[at + 1 : end], quoted=True)]
        if text[at] == '"' and not quoted:
            self._at += 1
            return [Text("", quoted=True), *self._until('"', quoted=True)]
        if text[at] == "\\" and following:
            self._at += 2
            is_kept = quoted and following not in '$`"\\\n'
            plain = f"\\{following}" if is_kept else following
            return [Text("" if following == "\n" else plain, quoted=True)]
        if text[at] == "`":
            end = self._find("`", at + 1)
            self._at = end + 1
            inner = _Parser(text[at + 1 : end], self._depth + 1, self._commands)
            return [Substitution(inner.whole(), quoted)]
        if text.startswith("$((", at):
            self._at += 3
            return [Arithmetic(tuple(self._until("))", quoted=True)))]
        if text.startswith("$(", at):
            inner = _Parser(text[at + 2 :], self._depth + 1, self._commands)
            script, length = inner.inside_brackets()
            self._at += 2 + length
            return [Substitution(script, quoted)]
        if text.startswith("${", at):
            return [self._parameter(quoted=quoted)]
        name = _name(text, at + 1) or (following if following in "?#@*$0123456789" else "")
        if text[at] == "$" and name:
            self._at += 1 + len(name)
            return [Parameter(name, quoted)]
        self._at += 1
        return [Text(text[at], quoted)]

    def _parameter(self, *, quoted: bool) -> Parameter:
        self._at += 2
        name = _name(self._text, self._at) or self._text[self._at : self._at + 1]
        self._at += len(name)
        for operator in (":-", ":=", ":+", "-", "=", "+", ""):
            if self._text.startswith(operator, self._at):
                self._at += len(operator)
                break
        word = tuple(self._until("}", quoted=quoted))
        if word and not operator:
            raise SyntaxError("bad substitution")
        return Parameter(name, quoted, operator, word)

    def _find(self, end: str, start: int) -> int:
        at = self._text.find(end, start)
        if at < 0:
            raise SyntaxError(f"no closing {end}")
        return at

    # Grammar.

    def script(self) -> Script:
        """Read commands up to something that closes them."""
        statements: list[AndOr] = []
        while True:
            while self._operator in ("\n", ";"):
                self._next()
            if (not self._word and self._operator != "(") or plain(self._word) in CLOSING:
                return tuple(statements)
            statements.append(self._and_or())

    def expect(self, wanted: str) -> None:
        found = self._operator or plain(self._word) or ""
        if wanted != found or (not wanted and self._word):
            raise SyntaxError(f"unexpected {found!r}")
        self._next()

    def _and_or(self) -> AndOr:
        pipelines = [("", self._pipeline())]
        while self._operator in ("&&", "||"):
            operator = self._operator
            self._skip_lines()
            pipelines.append((operator, self._pipeline()))
        in_background = self._operator == "&"
        if self._operator in ("&", ";", "\n"):
            self._next()
        elif self._operator not in ("", ")") or (self._word and plain(self._word) not in CLOSING):
            raise SyntaxError(f"unexpected {self._operator or plain(self._word)!r}")
        return AndOr(tuple(pipelines), in_background)

    def _skip_lines(self) -> None:
        self._next()
        while self._operator == "\n":
            self._next()

    def _pipeline(self) -> Pipeline:
        negated = plain(self._word) == "!"
        if negated:
            self._next()
        commands = [self._command()]
        while self._operator == "|":
            self._skip_lines()
            commands.append(self._command())
        return Pipeline(tuple(commands), negated)

    def _command(self) -> Command:
        what: Simple | If | Loop | For | Group
        keyword = plain(self._word)
        if keyword in NOT_UNDERSTOOD:
            raise SyntaxError(f"{keyword} is not understood")
        if self._operator == "(" or keyword == "{":
            is_subshell = self._operator == "("
            self._next()
            what = Group(self.script(), is_subshell)
            self.expect(")" if is_subshell else "}")
        elif keyword == "if":
            what = self._if()
        elif keyword in ("while", "until"):
            self._next()
            condition = self.script()
            what = Loop(condition, self._body(), keyword == "until")
        elif keyword == "for":
            what = self._for()
        else:
            return self._simple()
        redirects: list[Redirect] = []
        while redirect := self._redirect():
            redirects.append(redirect)
        return Command(what, tuple(redirects))

    def _if(self) -> If:
        branches: list[tuple[Script, Script]] = []
        while plain(self._word) in ("if", "elif"):
            self._next()
            condition = self.script()
            self.expect("then")
            branches.append((condition, self.script()))
        if plain(self._word) == "else":
            self._next()
            branches.append(((), self.script()))
        self.expect("fi")
        return If(tuple(branches))

    def _body(self) -> Script:
        self.expect("do")
        body = self.script()
        self.expect("done")
        return body

    def _for(self) -> For:
        self._next()
        name = plain(self._word) or ""
        self._next()
        self.expect("in")
        words: list[Word] = []
        while self._word:
            words.append(self._word)
            self._next()
        while self._operator in (";", "\n"):
            self._next()
        return For(name, tuple(words), self._body())

    def _simple(self) -> Command:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            redirect = self._redirect()
            if redirect is not None:
                redirects.append(redirect)
                continue
            if not self._word:
                break
            name = _assigned(self._word)
            if name and not words:
                # Each character before the value is a part of its own.
                assignments.append((name, self._word[len(name) + 1 :]))
            else:
                words.append(self._word)
            self._next()
        if not words and not assignments and not redirects:
            raise SyntaxError(f"unexpected {self._operator or 'end'!r}")
        texts = [plain(word) for word in words]
        self._commands += texts[:1]
        if texts and texts[0] in RUNNING_OTHERS:
            rest = (text for text in texts[1:] if text is None or not is_option(text))
            self._commands += list(rest)[:1]
        return Command(Simple(tuple(assignments), tuple(words)), tuple(redirects))

    def _redirect(self) -> Redirect | None:
        """Read a redirection, if one comes."""
        descriptor, written = 1, plain(self._word)
        if written in ("1", "2") and self._text[self._at : self._at + 1] == ">":
            descriptor = int(written)
            self._next()
        operator = self._operator
        if operator not in REDIRECTING:
            return None
        self._next()
        if self._operator == "&":  # as in 2>&1
            operator += "&"
            self._next()
        if not self._word:
            raise SyntaxError("redirection to nothing")
        redirect = Redirect(descriptor, operator, self._word)
        self._next()
        return redirect


def is_option(text: str) -> bool:
    """Tell whether a word after ``exec`` or ``env`` is an option or a variable."""
    return text.startswith("-") or "=" in text


def plain(word: Word) -> str | None:
    """Return the text of a word in which nothing is quoted or expanded."""
    if not word or not all(isinstance(part, Text) and not part.quoted for part in word):
        return None
    return "".join(part.text for part in word if isinstance(part, Text))


def _name(text: str, at: int) -> str:
    """Return the name of a variable that begins at *at*, or an empty string."""
    end = at
    while end < len(text) and (text[end] == "_" or (text[end].isalnum() and text[end].isascii())):
        end += 1
    return "" if text[at : at + 1].isdigit() else text[at:end]


def _assigned(word: Word) -> str:
    """Return the name before the ``=`` of an assignment, or an empty string."""
    written = ""
    for part in word:
        if not isinstance(part, Text) or part.quoted:
            break
        written += part.text
    name, equals, _ = written.partition("=")
    return name if equals and name and _name(name, 0) == name else ""
