"""The gate: does a partition assignor keep what it owes its group? `gate` feeds it and says so.

What it takes is imported when it is used: pytest loads the plugin of this package in every run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .contract import assignor_contract
    from .feed import Feed, How
    from .run import gate
else:

    def gate(*arguments: Any, **options: Any) -> Any:
        """See `run.gate`."""
        return import_module(".run", __name__).gate(*arguments, **options)

    def __getattr__(name: str) -> Any:
        if name not in _FROM:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_FROM[name], __name__), name)


_FROM = {"Feed": ".feed", "How": ".feed", "assignor_contract": ".contract"}

__all__ = ["Feed", "How", "assignor_contract", "gate"]
