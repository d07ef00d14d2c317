"""How Sphinx builds these pages into a site (``make docs``) that needs nothing from elsewhere."""

from berth.runtime.release import version as version_of

project = "berth"
author = "the berth authors"
copyright = "the berth authors, Apache-2.0"
version = release = version_of()

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["_build"]

myst_heading_anchors = 3
"""Headings are linked as on GitHub: ``page.md#the-heading``."""

html_theme = "furo"
html_title = f"berth {release}"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
