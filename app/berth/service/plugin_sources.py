"""Sources of plugins: in-tree, entry points of installed packages, files, ``module:Class``.

Whatever the source, a plugin is known by its ``NAME``: in the configuration, in messages and in
metrics. Importing a plugin runs its code, so only what the operator names is imported: references
are read from configuration files, never from what is sent over HTTP.
"""

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from berth.kube.field_errors import join
from berth.scheduler.config import errors
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.plugin_references import references
from berth.scheduler.config.types import ExtensionPoint, KubeSchedulerConfiguration
from berth.scheduler.framework.interface import EXTENSION_POINTS, Plugin, PluginArgs
from berth.scheduler.profile.build import args_models
from berth_plugins.registry import IN_TREE

GROUP: Final = "berth.plugins"
"""The entry-point group; an entry's name is the plugin's ``NAME``."""
IN_TREE_ORIGIN: Final = "in-tree"


class KnownPlugins(msgspec.Struct, frozen=True):
    """All plugins that a configuration may enable, by name."""

    registry: Mapping[str, type[Plugin]] = msgspec.field(default_factory=lambda: dict(IN_TREE))
    origins: Mapping[str, str] = msgspec.field(
        default_factory=lambda: dict.fromkeys(IN_TREE, IN_TREE_ORIGIN)
    )
    """By name: where the plugin comes from, in words."""
    aliases: Mapping[str, str] = msgspec.field(default_factory=dict)
    """By ``module:Class``, as a configuration may name a plugin: its NAME."""
    directories: tuple[Path, ...] = ()
    """Where files were looked for."""

    @property
    def others(self) -> tuple[str, ...]:
        """Names and origins of the plugins that are not in-tree."""
        return tuple(
            f"{name} ({origin})"
            for name, origin in sorted(self.origins.items())
            if origin != IN_TREE_ORIGIN
        )

    @classmethod
    def find(
        cls, *, directories: Iterable[Path] = (), references: Iterable[str] = ()
    ) -> "KnownPlugins":
        """Import the plugins of installed packages, of the files in *directories*, and more.

        *references* are ``module:Class``. Raises ConfigError, which names the file or entry point,
        for a plugin that cannot be imported or used, and for two of the same name.
        """
        directories = tuple(directories)
        plugins = [*_installed(), *_in_files(directories)]
        known = cls(directories=directories).with_plugins(plugins)
        return known.with_references(dict.fromkeys(references, "--plugin"))

    def with_references(self, references: Mapping[str, str]) -> "KnownPlugins":
        """Import ``module:Class`` references too; each with the place that names it, for errors."""
        referred, aliases = [], dict(self.aliases)
        for reference, place in references.items():
            if reference in aliases:
                continue
            kind = _referred(reference, place)
            aliases[reference] = kind.NAME
            referred.append((kind, reference))
        known = self.with_plugins(referred)
        return KnownPlugins(known.registry, known.origins, aliases, self.directories)

    def referred_in(self, document: object, *, source: str) -> "KnownPlugins":
        """Import the references that a configuration, decoded but not checked, has for plugins."""
        return self.with_references(
            {reference.text: f"{source}: {reference.path}" for reference in references(document)}
        )

    @property
    def args_models(self) -> dict[str, type[PluginArgs]]:
        return args_models(self.registry)

    @property
    def as_flags(self) -> tuple[str, ...]:
        """Return the flags by which another process of berth knows the same plugins."""
        return (
            *(f"--plugin-dir={directory}" for directory in self.directories),
            *(f"--plugin={reference}" for reference in self.aliases),
        )

    def check_args(self, config: KubeSchedulerConfiguration, *, source: str) -> None:
        """Raise ConfigError if *config* has args for a plugin by others that takes none.

        Those of in-tree plugins are ignored, as kube-scheduler does.
        """
        problems = [
            errors.forbidden(
                join("profiles", i, "pluginConfig", j, "args"),
                f"plugin {given.name} ({self.origins[given.name]}) takes no args",
            )
            for i, profile in enumerate(config.profiles)
            for j, given in enumerate(profile.plugin_config)
            if given.args
            and given.name in self.registry
            and self.origins[given.name] != IN_TREE_ORIGIN
            and self.registry[given.name].ARGS is None
        ]
        if problems:
            raise ConfigError(source, problems)

    def with_plugins(self, plugins: Iterable[tuple[type[Plugin], str]]) -> "KnownPlugins":
        """Add classes, each with where it comes from. Raises ConfigError as :meth:`find` does."""
        registry, origins = dict(self.registry), dict(self.origins)
        for kind, origin in plugins:
            _check(kind, origin)
            other = registry.setdefault(kind.NAME, kind)
            if other is not kind:
                raise ConfigError(
                    origin,
                    [f"plugin {kind.NAME!r}: there is one of that name: {origins[kind.NAME]}"],
                )
            origins.setdefault(kind.NAME, origin)
        return KnownPlugins(registry, origins, self.aliases, self.directories)


def files_in(directories: Iterable[Path]) -> list[Path]:
    """List the files that plugins are looked for in; names that begin with ``_`` are left out.

    Raises ConfigError when a directory cannot be read.
    """
    files: list[Path] = []
    for directory in directories:
        try:
            inside = sorted(directory.iterdir())
        except OSError as exc:
            raise ConfigError(str(directory), [f"plugin directory: {exc.strerror}"]) from exc
        files += [p for p in inside if p.suffix == ".py" and p.name[0] not in "._" and p.is_file()]
    return files


def points_of(kind: type[Plugin]) -> list[str]:
    """Name the extension points that a plugin implements, as the configuration spells them."""
    points = [point for point, base in EXTENSION_POINTS.items() if issubclass(kind, base)]
    return [ExtensionPoint(point).field for point in points]


def _installed() -> Iterator[tuple[type[Plugin], str]]:
    for entry in entry_points(group=GROUP):
        package = f" of {entry.dist.name} {entry.dist.version}" if entry.dist else ""
        origin = f"entry point {entry.name} = {entry.value}{package}"
        try:
            kind = entry.load()
        except Exception as exc:
            raise _not_imported(origin, exc) from exc
        _check(kind, origin)
        if entry.name != kind.NAME:
            raise ConfigError(origin, [f"an entry is called as its plugin, {kind.NAME!r}"])
        yield kind, origin


def _in_files(directories: Iterable[Path]) -> Iterator[tuple[type[Plugin], str]]:
    for path in files_in(directories):
        module = _module_of(path)
        kinds = [
            kind
            for kind in vars(module).values()
            if isinstance(kind, type)
            and issubclass(kind, Plugin)
            and kind.__module__ == module.__name__
            and hasattr(kind, "NAME")
        ]
        if not kinds:
            raise ConfigError(str(path), ["defines no plugin: a subclass of Plugin with a NAME"])
        yield from ((kind, str(path)) for kind in kinds)


def _module_of(path: Path) -> ModuleType:
    """Import a file under a name that tells its content.

    So a file that has changed becomes another module beside the old one, whose instances go on
    until they are replaced, and one that has not changed is not run again. It may import what
    is in other files of its directory: ``from ._name import thing``.
    """
    package = _package_of(path.parent)
    source = _content(path)
    digest = _digest(bytes(path), package.__name__.encode(), source)
    name = "_".join(("berth_plugin", re.sub(r"\W", "_", path.stem), digest))
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(path)
    module.__package__ = package.__name__
    sys.modules[name] = module  # pydantic and dataclasses look themselves up there
    try:
        # Not by importlib's loader, whose cached byte code is told apart by whole seconds.
        with _without_byte_code():
            exec(compile(source, str(path), "exec"), vars(module))
    except Exception as exc:
        del sys.modules[name]
        raise _not_imported(str(path), exc) from exc
    return module


def _package_of(directory: Path) -> ModuleType:
    """Return a package of the files in *directory* whose names begin with ``_``.

    It is another one when one of these has changed.
    """
    shared = sorted(path for path in directory.glob("_*.py") if path.is_file())
    digest = _digest(bytes(directory), *map(_content, shared))
    package = sys.modules.setdefault(name := f"berth_plugin_directory_{digest}", ModuleType(name))
    package.__path__ = [str(directory)]
    return package


def _digest(*parts: bytes) -> str:
    return sha256(b"\0".join(parts)).hexdigest()[:12]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise ConfigError(str(path), [str(exc.strerror)]) from exc


@contextmanager
def _without_byte_code() -> Iterator[None]:
    """Have modules imported that leave no byte code behind; see above."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _referred(reference: str, place: str) -> type[Plugin]:
    module, _, name = reference.partition(":")
    where = f"{place}: {reference!r}"
    try:
        kind = getattr(import_module(module), name)
    except Exception as exc:
        raise _not_imported(where, exc) from exc
    _check(kind, where)
    checked: type[Plugin] = kind
    return checked


def _not_imported(origin: str, exc: Exception) -> ConfigError:
    return ConfigError(origin, [f"cannot be imported: {type(exc).__name__}: {exc}"])


def _check(kind: Any, origin: str) -> None:
    """Raise ConfigError, naming *origin*, unless *kind* is a class that profiles can use."""
    problem = _problem(kind)
    if problem:
        raise ConfigError(origin, [problem])


def _problem(kind: Any) -> str:
    if not (isinstance(kind, type) and issubclass(kind, Plugin)):
        return f"{kind!r} is no subclass of berth.scheduler.framework.interface.Plugin"
    name = getattr(kind, "NAME", None)
    if not isinstance(name, str) or not name or ":" in name:
        return f"{kind.__qualname__}.NAME: {name!r} must be a name without a colon"
    if not any(issubclass(kind, base) for base in EXTENSION_POINTS.values()):
        return f"plugin {name!r} implements no extension point"
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(kind.__abstractmethods__))
        return f"plugin {name!r} does not implement {missing}"
    args: Any = kind.ARGS
    if args is not None and not (isinstance(args, type) and issubclass(args, PluginArgs)):
        return f"plugin {name!r}: ARGS must be a subclass of PluginArgs, not {args!r}"
    return ""
