"""Reports: one module per format, each a pure function of the report and the rule catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ...spec.rule import Rule
from ..report import Report
from . import github, html, json, junit, markdown, sarif
from .pytest_case import render_test
from .terminal import show

__all__ = ["RENDERERS", "Renderer", "render_test", "show"]

Renderer = Callable[[Report, Mapping[str, Rule]], str]

RENDERERS: Mapping[str, Renderer] = MappingProxyType(
    {
        "json": json.render,
        "junit": junit.render,
        "sarif": sarif.render,
        "markdown": markdown.render,
        "html": html.render,
        "github": github.render,
    }
)
"""Every format of ``--report FORMAT=FILE`` by its name; the text is to be written as UTF-8."""
