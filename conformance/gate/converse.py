"""Many conversations with one subject at a time: their questions go to it in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from ...spec.assignors.case import Case, NoAnswer
from ...spec.assignors.examine import Conversation, Documented, Examined, examine
from .subject import Subject

TOGETHER = 128
"""How many conversations go on at once."""
CAREFUL = 4
"""At the beginning, and after a crash or a hang: each may cost a timeout."""


def examined(subject: Subject, cases: Iterable[Case], algorithm: Documented | None = None) -> Iterator[Examined]:
    """What `examine` finds for each of ``cases``, as the conversations end. ``cases`` is read as there is room."""
    waiting = iter(cases)
    talking: list[tuple[Conversation, Case]] = []
    together = CAREFUL
    while True:
        for case in islice(waiting, max(0, together - len(talking))):
            conversation = examine(case, subject.kind, algorithm)
            talking.append((conversation, next(conversation)))
        if not talking:
            return
        answers = subject.ask([asked for _, asked in talking])
        silent = any(isinstance(answer, NoAnswer) and answer.how != "error" for answer in answers)
        together = CAREFUL if silent else min(TOGETHER, 2 * together)
        going_on: list[tuple[Conversation, Case]] = []
        for (conversation, _), answer in zip(talking, answers, strict=True):
            try:
                going_on.append((conversation, conversation.send(answer)))
            except StopIteration as end:
                yield end.value
        talking = going_on
