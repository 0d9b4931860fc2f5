"""Every rule by id: the promises of a group, and those of an assignor and of a Connect leader."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .assignors.catalogue import ASSIGNOR_RULES
from .assignors.connect import CONNECT_RULES
from .rule import Rule
from .rules import RULES

CATALOGUE: Mapping[str, Rule] = MappingProxyType({**RULES, **ASSIGNOR_RULES, **CONNECT_RULES})
