"""The README of packages: on a package index, nothing lies beside it that it could link to."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def absolute(text: str, address: str, version: str) -> str:
    """Return Markdown with its links and pictures at *address*, as they are in *version*."""
    elsewhere = r"(?!https?:|#)"
    pictures = re.compile(rf"(!\[[^]]*\]\(){elsewhere}")
    text = pictures.sub(rf"\1{address}/raw/v{version}/", text)
    return re.sub(rf"\]\({elsewhere}", f"]({address}/blob/v{version}/", text)


class ReadmeHook(MetadataHookInterface):
    """Hatchling's hook: the readme of what it builds is README.md, made absolute."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text("utf-8")
        text = absolute(text, metadata["urls"]["Source"], metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
