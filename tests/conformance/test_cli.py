"""The command line as a user meets it: exit status, messages, reports."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from kipcheck.conformance import cli as cli_module
from kipcheck.conformance.cli import cli
from kipcheck.conformance.pipeline import job
from kipcheck.conformance.pipeline.runtime import SparkFailed, SparkMissing
from kipcheck.conformance.validate import _size  # pyright: ignore[reportPrivateUsage]
from kipcheck.spec import RULES

RULE_TRACES = Path(__file__).parents[2] / "traces" / "rules"
VIOLATING = RULE_TRACES / "exclusive-assignment.violates.jsonl"
CONFORMING = RULE_TRACES / "exclusive-assignment.conforms.jsonl"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((CONFORMING,), 0),
        ((VIOLATING,), 1),
        ((CONFORMING, VIOLATING), 1),
        (("/no/such/file",), 2),
        ((CONFORMING, "/no/such/file"), 2),
        ((VIOLATING, "--skip", "exclusive-assignment"), 0),
        ((VIOLATING, "--severity", "exclusive-assignment=warning"), 0),
        ((VIOLATING, "--rules", "generation-increases"), 3),
        ((CONFORMING, "--strict"), 3),
        ((CONFORMING, "--rules", "nonsense"), 2),
        ((CONFORMING, "--severity", "exclusive-assignment=fatal"), 2),
        ((CONFORMING, "--report", "pdf=x.pdf"), 2),
        ((CONFORMING, "--clock-skew", "soon"), 2),
        ((), 2),
    ],
)
def test_exit_status(arguments: Sequence[str | Path], status: int) -> None:
    assert run("validate", *arguments).exit_code == status


def test_malformed_lines_leave_the_verdict_open_unless_allowed(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text(CONFORMING.read_text() + '{"kind": "generation", "group": 7}\n')
    result = run("validate", trace)
    assert result.exit_code == 3
    assert f"t.jsonl:{len(trace.read_text().splitlines())}" in "".join(result.output.split())
    assert run("validate", trace, "--allow-malformed").exit_code == 0


def test_nothing_recognised_is_undetermined(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text("hello\nworld\n")
    result = run("validate", log)
    assert result.exit_code == 3
    assert "UNDETERMINED" in result.output


def test_every_report_is_written(tmp_path: Path) -> None:
    names = ("json", "junit", "sarif", "markdown", "html")
    result = run("validate", VIOLATING, *(part for name in names for part in ("--report", f"{name}={tmp_path / name}")))
    assert result.exit_code == 1
    assert all((tmp_path / name).read_text() for name in names)
    schema = json.loads(run("schema", "report").output)
    report = json.loads((tmp_path / "json").read_text())
    jsonschema.validate(report, schema)
    assert report["schema"] == "kipcheck.report/1"
    assert [f["rule"] for f in report["findings"]] == ["exclusive-assignment"]


def test_a_report_that_cant_be_written_is_a_usage_error(tmp_path: Path) -> None:
    result = run("validate", CONFORMING, "--report", f"json={tmp_path / 'no' / 'such' / 'dir.json'}")
    assert result.exit_code == 2
    assert "can't write the json report" in result.output


def test_auto_says_which_engine_it_took() -> None:
    assert "note: engine: local, for some 0.0 MB of events" in " ".join(run("validate", CONFORMING).output.split())


def test_a_log_counts_for_less_than_a_trace_and_a_compressed_one_for_more(tmp_path: Path) -> None:
    sizes = {}
    for name in ("a.log", "a.log.gz", "a.jsonl", "a.jsonl.zst"):
        (tmp_path / name).write_bytes(bytes(8000))
        sizes[name] = _size(str(tmp_path / name))
    assert sizes == {"a.log": 1000, "a.log.gz": 8000, "a.jsonl": 8000, "a.jsonl.zst": 64000}


@pytest.mark.parametrize("option", ["--master", "--scratch"])
def test_options_of_spark_are_refused_with_the_local_engine(option: str) -> None:
    result = run("validate", CONFORMING, "--engine", "local", option, "x")
    assert (result.exit_code, f"{option}" in result.output) == (2, True)


def test_a_machine_without_spark_is_told_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: object) -> None:
        raise SparkMissing("Spark needs pyspark: pip install 'kipcheck[spark]'")

    monkeypatch.setattr(job, "session", missing)
    result = run("validate", CONFORMING, "--engine", "spark")
    assert result.exit_code == 2
    assert "pip install 'kipcheck[spark]'" in result.output


@pytest.mark.parametrize("command", [("validate", str(CONFORMING), "--engine", "spark"), ("ingest", str(CONFORMING), "--out", "out")])
def test_a_bare_install_is_told_what_spark_needs(command: tuple[str, ...], tmp_path: Path) -> None:
    bare = f"import sys; sys.modules['numpy'] = None; sys.argv[1:] = {command}; from kipcheck.conformance.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", bare], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 2
    assert "numpy: pip install 'kipcheck[spark]'" in ran.stderr


def test_a_failure_of_spark_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(_: object) -> None:
        raise SparkFailed("no master answers at spark://nowhere:7077")

    monkeypatch.setattr(job, "session", failed)
    result = run("validate", CONFORMING, "--master", "spark://nowhere:7077")
    assert (result.exit_code, result.output) == (2, "Error: no master answers at spark://nowhere:7077\n")


def test_a_data_set_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"schema": "kipcheck.dataset/2", "inputs": [], "parts": []}')
    result = run("validate", tmp_path)
    assert result.exit_code == 2
    assert "upgrade kipcheck" in result.output


def test_a_waiver_accepts_a_finding_until_its_day(tmp_path: Path) -> None:
    run("validate", VIOLATING, "--report", f"json={tmp_path / 'r.json'}")
    (finding,) = json.loads((tmp_path / "r.json").read_text())["findings"]
    waivers = tmp_path / "waivers.toml"
    waivers.write_text(f'[[waiver]]\nfingerprint = "{finding["fingerprint"]}"\nreason = "known"\nexpires = 2999-01-01\n')
    assert run("validate", VIOLATING, "--waivers", waivers).exit_code == 0
    waivers.write_text(waivers.read_text().replace("2999", "2001"))
    assert run("validate", VIOLATING, "--waivers", waivers).exit_code == 1
    waivers.write_text("[[waiver]]\n")
    assert run("validate", VIOLATING, "--waivers", waivers).exit_code == 2


def test_the_catalogue_lists_and_explains_every_rule() -> None:
    listed = run("rules").output
    for rule in RULES:
        assert rule in listed
        explained = run("rules", rule).output
        assert RULES[rule].promise.split()[0] in explained
        assert f"{rule}-violates" in explained
        assert f"{rule}-conforms" in explained
    assert run("rules", "nonsense").exit_code == 2


@pytest.mark.parametrize("name", ["trace", "report", "case"])
def test_a_schema_is_valid_json_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(run("schema", name).output))


def test_doctor_tells_what_each_part_is_for() -> None:
    assert "Maven" in run("doctor").output


def test_a_defect_of_kipcheck_is_told_as_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(**_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(cli_module, "cli", broken)
    with pytest.raises(SystemExit) as ended:
        cli_module.main()
    assert ended.value.code == 70
    assert "defect of kipcheck" in capsys.readouterr().err
