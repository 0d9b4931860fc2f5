"""States per second of one model under three engines: our search, Stateright (Rust), a plain Python search.

    python tests/benchmarks/bench_states.py --partitions 2

All three run the same generated bit code (Python integers, numpy columns, Rust u64) on one thread, without symmetry or reduction,
and must count the same states. Stateright is skipped where cargo is missing or cannot build it.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import time
from pathlib import Path

from kipcheck.model.protocol.bits import Code, compile_system
from kipcheck.model.protocol.consumer import consumer_protocol
from kipcheck.model.protocol.search import Generated, explore, size_of

CRATE = Path(__file__).parent / "stateright"


def compiled(members: int, partitions: int) -> Code:
    """The dynamic consumer protocol with unlimited faults, and what S2 reads."""
    system = consumer_protocol(static=False, partial_loss=False, commits=False)
    return compile_system(system, size_of(system, members=members, partitions=partitions), {"S2": system.safety["S2"]})


def numpy_search(code: Code) -> tuple[int, float]:
    """Distinct states and CPU seconds."""
    found = explore(Generated(code), always=("S2",))
    return found.states, found.seconds


def python_search(code: Code) -> tuple[int, float]:
    """The same with a set of tuples."""
    functions = code.functions(lambda truth: -int(truth))
    guards, observe = functions["guards"], functions["observe"]
    updates = [functions[f"update{at}"] for at in range(len(code.moves))]
    began = time.process_time()
    seen, level = {code.initial}, [code.initial]
    while level:
        following: list[tuple[int, ...]] = []
        for state in level:
            for enabled, update in zip(guards(*state), updates, strict=True):
                if enabled:
                    after = update(*state)
                    if after not in seen:
                        seen.add(after)
                        following.append(after)
        assert all(observe(*state)[0] for state in following)
        level = following
    return len(seen), time.process_time() - began


def rust(code: Code) -> str:
    """The generated code as Rust: the same expressions, other punctuation."""
    words = code.layout.words

    def body(lines: tuple[str, ...], result: str) -> str:
        named = "".join(f"    let w{at} = w[{at}];\n" for at in range(words))
        return named + "".join(f"    let {_expression(line)};\n" for line in lines) + f"    {result}\n"

    def function(name: str, result: str, lines: tuple[str, ...], value: str) -> str:
        return f"pub fn {name}(w: &[u64; WORDS]) -> {result} {{\n{body(lines, value)}}}\n"

    lines, results = code.guard_body
    text = [
        f"pub const WORDS: usize = {words};\npub const MOVES: usize = {len(code.moves)};\n",
        f"pub const INITIAL: [u64; WORDS] = {list(code.initial)};\n",
        "fn ones(truth: bool) -> u64 { (truth as u64).wrapping_neg() }\n",
        function("guard", "[bool; MOVES]", lines, f"[{', '.join(map(_expression, results))}]"),
        function("observe", "bool", code.observe_body[0], _expression(code.observe_body[1][0])),
    ]
    for at, (lines, results) in enumerate(code.update_bodies):
        text.append(function(f"update{at}", "[u64; WORDS]", lines, f"[{', '.join(map(_expression, results))}]"))
    arms = "".join(f"        {at} => update{at}(w),\n" for at in range(len(code.moves)))
    text.append(
        f"pub fn update(at: u16, w: &[u64; WORDS]) -> [u64; WORDS] {{\n    match at {{\n{arms}        _ => unreachable!(),\n    }}\n}}\n"
    )
    return "\n".join(text)


def _expression(text: str) -> str:
    return re.sub(r"\bTrue\b", "true", re.sub(r"\bFalse\b", "false", text)).replace("~", "!")


def stateright_search(code: Code) -> tuple[int, float] | str:
    """Distinct states and CPU seconds of one thread, or why not."""
    if shutil.which("cargo") is None:
        return "cargo is not installed"
    (CRATE / "src" / "generated.rs").write_text(rust(code))
    build = subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=CRATE, capture_output=True, text=True, check=False)
    if build.returncode:
        return f"cargo build failed: {build.stderr.strip().splitlines()[-1] if build.stderr.strip() else build.returncode}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([str(CRATE / "target" / "release" / "kipcheck-bench")], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int(run.stdout.split()[0]), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Run all three and print rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=2)
    arguments = parser.parse_args()
    code = compiled(arguments.members, arguments.partitions)
    found: dict[str, tuple[int, float] | str] = {
        "kipcheck (numpy)": numpy_search(code),
        "Stateright": stateright_search(code),
        "plain Python": python_search(code),
    }
    counted = {name: result for name, result in found.items() if not isinstance(result, str)}
    assert len({states for states, _ in counted.values()}) == 1, counted
    _, ours = counted["kipcheck (numpy)"]
    for name, result in found.items():
        if isinstance(result, str):
            print(f"{name:18} skipped: {result}")
        else:
            states, seconds = result
            print(
                f"{name:18} {states:>12,} states {seconds:8.2f} s {states / seconds:>12,.0f} states/s  kipcheck is {seconds / ours:.2f} times as fast"
            )


if __name__ == "__main__":
    main()
