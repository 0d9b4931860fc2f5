"""What the page offers to begin with: short scripts, told for whoever has never seen a rebalance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from .script import read
from .session import Session, begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """``script`` is played at once, ``ahead`` is what the page offers to play next."""

    name: str
    title: str
    what: str
    script: str
    ahead: str = ""

    def begin(self) -> Session:
        return replace(begin(read(self.script)), ahead=read(self.ahead).commands)


_ALL = (
    Preset(
        name="cooperative",
        title="A third cooperative consumer joins",
        what="KIP-429: the members keep what they have; what is to move is given up first, and given away in a second rebalance.",
        script="""
            resize orders 6
            add c1 consumer topics=orders
            add c2 consumer topics=orders
            settle
        """,
        ahead="""
            add c3 consumer topics=orders
            due
            settle
        """,
    ),
    Preset(
        name="eager",
        title="The same with range: stop the world",
        what="The eager protocol: every member gives up everything before it rejoins, and nobody owns anything in between.",
        script="""
            resize orders 6
            add c1 consumer topics=orders assignors=range
            add c2 consumer topics=orders assignors=range
            settle
        """,
        ahead="""
            add c3 consumer topics=orders assignors=range
            settle
        """,
    ),
    Preset(
        name="static-restart",
        title="A static member restarts in time",
        what="KIP-345: back within its session timeout, it has the same partitions, and nobody else notices.",
        script="""
            resize orders 4
            add s1 consumer topics=orders instance=i1 session=40000
            add s2 consumer topics=orders instance=i2 session=40000
            settle
        """,
        ahead="""
            crash s1
            wait 15000
            start s1
            settle
        """,
    ),
    Preset(
        name="static-not-held",
        title="A myth: an absent static member's partitions are held for it",
        what="While s1 stands still, another member joins; the rebalance goes on without s1, and its partitions may go to others"
        " although its session lives. Only fencing protects what it commits.",
        script="""
            resize orders 2
            add s1 consumer topics=orders instance=i1 session=60000 rebalance=20000
            settle
        """,
        ahead="""
            pause s1
            add c1 consumer topics=orders
            wait 30000
            add c2 consumer topics=orders
            wait 25000
            resume s1
            settle
        """,
    ),
    Preset(
        name="zombie",
        title="A myth: no two members ever believe that they own the same partition",
        what="c1 stands still for longer than its session, and its partitions go to c2. When it goes on it still believes in them,"
        " until a heartbeat or a commit is refused: a zombie, fenced and legal.",
        script="""
            resize orders 4
            add c1 consumer topics=orders
            add c2 consumer topics=orders
            settle
        """,
        ahead="""
            pause c1
            wait 15000
            resume c1
            commit c1
            settle
        """,
    ),
    Preset(
        name="rolling-upgrade",
        title="Rolling upgrade from range to cooperative-sticky",
        what="Two bounces: first both assignors are offered, then the old one goes. All the time everybody shares one of them.",
        script="""
            resize orders 4
            add c1 consumer topics=orders assignors=range
            add c2 consumer topics=orders assignors=range
            settle
        """,
        ahead="""
            close c1
            due
            add c1 consumer topics=orders assignors=cooperative-sticky,range
            settle
            close c2
            due
            add c2 consumer topics=orders assignors=cooperative-sticky,range
            settle
            close c1
            due
            add c1 consumer topics=orders assignors=cooperative-sticky
            settle
            close c2
            due
            add c2 consumer topics=orders assignors=cooperative-sticky
            settle
        """,
    ),
    Preset(
        name="connect-crash",
        title="A Connect worker crashes and comes back",
        what="KIP-415: lost work is dealt to nobody until the scheduled delay ends or the worker is back.",
        script="""
            resize sink 4
            add w1 worker
            add w2 worker
            settle
        """,
        ahead="""
            crash w2
            wait 20000
            start w2
            settle
        """,
    ),
    Preset(
        name="connect-zombie",
        title="A myth: a Connect task never runs twice",
        what="w2 stands still until its work was dealt to w1, and goes on: until it hears that it was thrown out, it runs its tasks as w1 does.",
        script="""
            resize sink 4
            add w1 worker delay=10000
            add w2 worker delay=10000
            settle
        """,
        ahead="""
            pause w2
            wait 45000
            resume w2
            settle
        """,
    ),
    Preset(
        name="mutant",
        title="A mutant: members rejoin before they revoke",
        what="The same third consumer, with a defect of the client switched on. A promise turns red: which, and at which step?",
        script="""
            mutate member-rejoins-before-revoking
            resize orders 6
            add c1 consumer topics=orders
            add c2 consumer topics=orders
            settle
        """,
        ahead="""
            add c3 consumer topics=orders
            settle
        """,
    ),
)

PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _ALL})
