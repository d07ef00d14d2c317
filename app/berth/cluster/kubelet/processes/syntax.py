"""The grammar of the shell, as far as commands of containers use it (POSIX, XCU 2.10).

Not understood, so SyntaxError: here-documents, functions with redirections, arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

OPERATORS: Final = ("&&", "||", ";;", ">>", "&>", ";", "&", "|", "(", ")", "<", ">", "\n")
CLOSING: Final = ("then", "elif", "else", "fi", "do", "done", "esac", "}")
RUNNING_OTHERS: Final = ("exec", "env", "timeout")
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


Word = tuple[Text | Parameter | Substitution | Arithmetic, ...]


@dataclass(frozen=True, slots=True)
class Redirect:
    descriptor: int
    """1 or 2; -1: both."""
    operator: str
    word: Word


@dataclass(frozen=True, slots=True)
class Simple:
    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class If:
    branches: tuple[tuple["Script", "Script"], ...]
    otherwise: "Script"


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
class Case:
    word: Word
    branches: tuple[tuple[tuple[Word, ...], "Script"], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """``{ ...; }``, or ``( ... )``, which has variables of its own."""

    body: "Script"
    is_subshell: bool


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    body: "Script"


@dataclass(frozen=True, slots=True)
class Command:
    what: Simple | If | Loop | For | Case | Group | Function
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
def parse(text: str) -> Script:
    """Return the script in *text*; SyntaxError if it is none, or not understood."""
    if len(text) > MOST_CHARACTERS:
        raise SyntaxError("too long")
    try:
        return _Parser(text, 0).whole()
    except RecursionError:
        raise SyntaxError("too deep") from None


class _Parser:
    """A recursive-descent parser, one token ahead. A token is an operator, a word or the end."""

    def __init__(self, text: str, depth: int) -> None:
        if depth > MOST_DEPTH:
            raise SyntaxError("too deep")
        self._text = text
        self._at = 0
        self._depth = depth
        self._operator = ""
        self._word: Word | None = None
        self._next()

    def whole(self) -> Script:
        script = self._script()
        if self._operator or self._word is not None:
            raise SyntaxError(f"unexpected {self._operator or self._keyword()!r}")
        return script

    # Tokens.

    def _next(self) -> None:
        text = self._text
        while self._at < len(text) and (
            text[self._at] in " \t" or text.startswith("\\\n", self._at)
        ):
            self._at += 2 if text[self._at] == "\\" else 1
        if self._at < len(text) and text[self._at] == "#":
            end = text.find("\n", self._at)
            self._at = len(text) if end < 0 else end
        self._operator, self._word = "", None
        if self._at >= len(text):
            return
        for operator in OPERATORS:
            if text.startswith(operator, self._at):
                if text.startswith(("<<", "<("), self._at):
                    raise SyntaxError("here-documents are not understood")
                self._operator = operator
                self._at += len(operator)
                return
        self._word = self._read_word()

    def _read_word(self) -> Word:
        """Read up to the next blank or operator."""
        parts: list[Text | Parameter | Substitution | Arithmetic] = []
        text = self._text
        while self._at < len(text) and text[self._at] not in " \t\n;&|<>()":
            match text[self._at]:
                case "'":
                    end = self._find("'", self._at + 1)
                    parts.append(Text(text[self._at + 1 : end], quoted=True))
                    self._at = end + 1
                case '"':
                    self._at += 1
                    parts.append(Text("", quoted=True))
                    parts += self._until('"', quoted=True)
                    self._at += 1
                case _:
                    parts.append(self._part(quoted=False))
        return tuple(parts)

    def _until(
        self, end: str, *, quoted: bool
    ) -> "list[Text | Parameter | Substitution | Arithmetic]":
        """Read the parts up to *end*, which stays to be read."""
        parts: list[Text | Parameter | Substitution | Arithmetic] = []
        while not self._text.startswith(end, self._at):
            if self._at >= len(self._text):
                raise SyntaxError(f"no closing {end}")
            if self._text[self._at] == '"' and not quoted:
                self._at += 1
                parts += self._until('"', quoted=True)
                self._at += 1
            else:
                parts.append(self._part(quoted=quoted))
        return parts

    def _part(self, *, quoted: bool) -> Text | Parameter | Substitution | Arithmetic:
        """Read one part of a word: what follows a ``$``, something escaped, or one character."""
        text, at = self._text, self._at
        if text[at] == "\\" and at + 1 < len(text):
            self._at += 2
            following = text[at + 1]
            if following == "\n":
                return Text("", quoted)
            is_kept = quoted and following not in '$`"\\'
            return Text(f"\\{following}" if is_kept else following, quoted=True)
        if text[at] == "`":
            end = self._find("`", at + 1)
            self._at = end + 1
            return Substitution(_Parser(text[at + 1 : end], self._depth + 1).whole(), quoted)
        if text.startswith("$((", at):
            self._at += 3
            expression = self._until("))", quoted=True)
            self._at += 2
            return Arithmetic(tuple(expression))
        if text.startswith("$(", at):
            inner = _Parser(text[at + 2 :], self._depth + 1)
            script = inner._script()
            if inner._operator != ")":
                raise SyntaxError("no closing )")
            self._at += 2 + inner._at
            return Substitution(script, quoted)
        if text.startswith("${", at):
            return self._parameter(quoted=quoted)
        if text[at] == "$":
            name = _name(text, at + 1) or (
                text[at + 1 : at + 2] if text[at + 1 : at + 2] in tuple("?#@*$!0123456789") else ""
            )
            if name:
                self._at += 1 + len(name)
                return Parameter(name, quoted)
        self._at += 1
        return Text(text[at], quoted)

    def _parameter(self, *, quoted: bool) -> Parameter:
        at = self._at + 2
        length = self._text[at : at + 1] == "#" and self._text[at + 1 : at + 2] != "}"
        at += length
        name = _name(self._text, at) or self._text[at : at + 1]
        self._at = at + len(name)
        operator = "#" if length else ""
        if not length and self._text[self._at : self._at + 1] != "}":
            for operator in (":-", ":=", ":+", ":?", "##", "%%", "-", "=", "+", "?", "#", "%"):
                if self._text.startswith(operator, self._at):
                    break
            else:
                raise SyntaxError("bad substitution")
            self._at += len(operator)
            word = tuple(self._until("}", quoted=quoted))
            self._at += 1
            return Parameter(name, quoted, operator, word)
        if self._text[self._at : self._at + 1] != "}":
            raise SyntaxError("bad substitution")
        self._at += 1
        return Parameter(name, quoted, "length" if operator else "")

    def _find(self, end: str, start: int) -> int:
        at = self._text.find(end, start)
        if at < 0:
            raise SyntaxError(f"no closing {end}")
        return at

    def _keyword(self) -> str:
        """Return the word as written, if nothing in it is quoted or expanded."""
        if self._word is None:
            return ""
        plain = [part.text for part in self._word if isinstance(part, Text) and not part.quoted]
        return "".join(plain) if len(plain) == len(self._word) else ""

    # Grammar.

    def _script(self) -> Script:
        """Read commands up to something that closes them."""
        statements: list[AndOr] = []
        while True:
            while self._operator in ("\n", ";"):
                self._next()
            if (self._word is None and self._operator != "(") or self._keyword() in CLOSING:
                return tuple(statements)
            statements.append(self._and_or())

    def _and_or(self) -> AndOr:
        pipelines = [("", self._pipeline())]
        while self._operator in ("&&", "||"):
            operator = self._operator
            self._skip_lines()
            pipelines.append((operator, self._pipeline()))
        in_background = self._operator == "&"
        if self._operator in ("&", ";", "\n"):
            self._next()
        elif self._word is not None or self._operator not in ("", ")", ";;"):
            raise SyntaxError(f"unexpected {self._operator or self._keyword()!r}")
        return AndOr(tuple(pipelines), in_background)

    def _skip_lines(self) -> None:
        self._next()
        while self._operator == "\n":
            self._next()

    def _pipeline(self) -> Pipeline:
        negated = self._keyword() == "!"
        if negated:
            self._next()
        commands = [self._command()]
        while self._operator == "|":
            self._skip_lines()
            commands.append(self._command())
        return Pipeline(tuple(commands), negated)

    def _command(self) -> Command:
        what: Simple | If | Loop | For | Case | Group | Function
        keyword = self._keyword()
        if self._operator == "(":
            self._next()
            what = Group(self._script(), is_subshell=True)
            self._expect(")")
        elif keyword == "{":
            self._next()
            what = Group(self._script(), is_subshell=False)
            self._expect("}")
        elif keyword == "if":
            what = self._if()
        elif keyword in ("while", "until"):
            self._next()
            condition = self._script()
            what = Loop(condition, self._body(), keyword == "until")
        elif keyword == "for":
            what = self._for()
        elif keyword == "case":
            what = self._case()
        else:
            return self._simple()
        return Command(what, self._redirects())

    def _expect(self, wanted: str) -> None:
        if wanted not in (self._operator, self._keyword()):
            raise SyntaxError(f"expected {wanted}")
        self._next()

    def _if(self) -> If:
        branches: list[tuple[Script, Script]] = []
        while self._keyword() in ("if", "elif"):
            self._next()
            condition = self._script()
            self._expect("then")
            branches.append((condition, self._script()))
        otherwise: Script = ()
        if self._keyword() == "else":
            self._next()
            otherwise = self._script()
        self._expect("fi")
        return If(tuple(branches), otherwise)

    def _body(self) -> Script:
        self._expect("do")
        body = self._script()
        self._expect("done")
        return body

    def _for(self) -> For:
        self._next()
        name = self._keyword()
        self._next()
        words: list[Word] = [(Parameter("@", quoted=True),)]
        if self._keyword() == "in":
            words = []
            self._next()
            while self._word is not None:
                words.append(self._word)
                self._next()
        while self._operator in (";", "\n"):
            self._next()
        return For(name, tuple(words), self._body())

    def _case(self) -> Case:
        self._next()
        word = self._word or ()
        self._next()
        while self._operator == "\n":
            self._next()
        self._expect("in")
        branches: list[tuple[tuple[Word, ...], Script]] = []
        while True:
            while self._operator in ("\n", ";;"):
                self._next()
            if self._keyword() == "esac":
                self._next()
                return Case(word, tuple(branches))
            if self._operator == "(":
                self._next()
            patterns: list[Word] = []
            while self._word is not None:
                patterns.append(self._word)
                self._next()
                if self._operator == "|":
                    self._next()
            self._expect(")")
            branches.append((tuple(patterns), self._script()))

    def _simple(self) -> Command:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            if self._word is None:
                if self._operator not in ("<", ">", ">>", "&>"):
                    break
                redirects.append(self._redirect(1))
                continue
            word, keyword = self._word, self._keyword()
            if keyword in ("1", "2") and self._text[self._at : self._at + 1] == ">":
                self._next()
                redirects.append(self._redirect(int(keyword)))
                continue
            name = _assigned(word)
            if name and not words:
                assignments.append((name, _without(word, len(name) + 1)))
            else:
                words.append(word)
            self._next()
            if self._operator == "(" and len(words) == 1 and not assignments:
                return self._function(keyword)
        if not words and not assignments and not redirects:
            raise SyntaxError(f"unexpected {self._operator or 'end'!r}")
        return Command(Simple(tuple(assignments), tuple(words)), tuple(redirects))

    def _function(self, name: str) -> Command:
        self._next()
        self._expect(")")
        while self._operator == "\n":
            self._next()
        self._expect("{")
        body = self._script()
        self._expect("}")
        return Command(Function(name, body))

    def _redirects(self) -> tuple[Redirect, ...]:
        redirects: list[Redirect] = []
        while self._operator in ("<", ">", ">>", "&>") or (
            self._keyword() in ("1", "2") and self._text[self._at : self._at + 1] == ">"
        ):
            descriptor = 1
            if self._word is not None:
                descriptor = int(self._keyword())
                self._next()
            redirects.append(self._redirect(descriptor))
        return tuple(redirects)

    def _redirect(self, descriptor: int) -> Redirect:
        operator = self._operator
        if operator == "&>":
            operator, descriptor = ">", -1
        self._next()
        if self._operator == "&":  # as in 2>&1
            operator += "&"
            self._next()
        if self._word is None:
            raise SyntaxError("redirection to nothing")
        redirect = Redirect(descriptor, operator, self._word)
        self._next()
        return redirect


def _name(text: str, at: int) -> str:
    """Return the name of a variable that begins at *at*, or an empty string."""
    end = at
    while end < len(text) and (text[end] == "_" or (text[end].isalnum() and text[end].isascii())):
        end += 1
    name = text[at:end]
    return "" if name[:1].isdigit() else name


def _assigned(word: Word) -> str:
    """Return the name before the ``=`` of an assignment, or an empty string."""
    written = ""
    for part in word:
        if not isinstance(part, Text) or part.quoted:
            break
        written += part.text
    name, equals, _ = written.partition("=")
    return name if equals and name and _name(name, 0) == name else ""


def _without(word: Word, count: int) -> Word:
    """Return *word* without its first *count* characters, which are one part each."""
    return word[count:]


def _plain(word: Word) -> str | None:
    """Return the text of a word in which nothing is expanded."""
    plain = [part.text for part in word if isinstance(part, Text)]
    return "".join(plain) if len(plain) == len(word) else None


def _is_command(text: str | None) -> bool:
    """Tell whether a word after ``exec`` or ``env`` is what they run: no option or variable."""
    return text is None or not (text.startswith("-") or "=" in text or text[:1].isdigit())


def commands_of(script: Script) -> "Sequence[str | None]":
    """Return the names of all simple commands in *script*; None where an expansion gives one."""
    names: list[str | None] = []
    defined: set[str] = set()

    def visit(script: Script) -> None:
        for statement in script:
            for _, pipeline in statement.pipelines:
                for command in pipeline.commands:
                    visit_command(command.what)

    def visit_command(what: object) -> None:
        match what:
            case Simple(assignments, words):
                for word in (*words, *(value for _, value in assignments)):
                    for part in word:
                        if isinstance(part, Substitution):
                            visit(part.script)
                texts = [_plain(word) for word in words]
                names.extend(texts[:1])
                if texts and texts[0] in RUNNING_OTHERS:
                    names.extend([text for text in texts[1:] if _is_command(text)][:1])
            case If(branches, otherwise):
                for condition, body in branches:
                    visit(condition)
                    visit(body)
                visit(otherwise)
            case Loop(condition, body, _):
                visit(condition)
                visit(body)
            case For(_, _, body) | Group(body, _):
                visit(body)
            case Case(_, cases):
                for _, body in cases:
                    visit(body)
            case Function(name, body):
                defined.add(name)
                visit(body)

    visit(script)
    return [name for name in names if name not in defined]
