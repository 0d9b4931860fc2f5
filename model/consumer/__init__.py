"""The consumer client of the classic group protocol, as in the Java client (ClassicKafkaConsumer, ConsumerCoordinator).

A `Consumer` is a frozen value and `step` a pure function; see `kipcheck.model.process` for what can happen to it. The
protocol in use, EAGER or COOPERATIVE, is the highest that all configured assignors support.
"""

from __future__ import annotations

from .client import busy, outstanding, owned, start, step
from .config import Config, Release
from .mutations import MUTATIONS
from .state import Consumer

__all__ = ["MUTATIONS", "Config", "Consumer", "Release", "busy", "outstanding", "owned", "start", "step"]
