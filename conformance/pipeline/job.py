"""Validates on Spark, from paths to a report: raw captures are ingested into a scratch data set first."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from ...spec.results import Settings, worst
from ..report import Input, Report
from ..waivers import Waiver, in_force, remarks, waive
from .dataset import is_dataset, load
from .engine import Missing, run
from .ingest import ingest
from .inputs import is_local, is_reached, local
from .manifest import NAME, DataSetError, Manifest
from .results import Table, finding_row, finding_schema, group_row, group_schema
from .runtime import session
from .sample import Sampler
from .storage import Hadoop, Local

NAMED = 10
"""How many groups that were left out are named."""


def validate(
    paths: Sequence[str],
    format: str,
    settings: Settings,
    waivers: Sequence[Waiver],
    today: date,
    *,
    master: str | None = None,
    scratch: str | None = None,
    tables: str | None = None,
) -> Report:
    """The report on one data set, or on raw captures; see `conformance.validate.validate`."""
    with session(master) as spark:
        ingested = [path for path in paths if is_dataset(path, spark)]
        if not ingested:
            with _scratch(spark, scratch) as out:
                inputs = ingest(paths, out, format=format, spark=spark).inputs
                manifest = load(out, spark)
                with _reached(out, manifest, spark, None) as root:
                    return _report(out, root, manifest, inputs, settings, waivers, today, spark, tables)
        if len(paths) > 1:
            raise DataSetError(f"{ingested[0]}: Spark validates one data set at a time: ingest the other captures into it first")
        manifest = load(ingested[0], spark)
        inputs = tuple(captured.entry for captured in manifest.inputs)
        with _reached(ingested[0], manifest, spark, scratch) as root:
            return _report(ingested[0], root, manifest, inputs, settings, waivers, today, spark, tables)


@contextmanager
def _scratch(spark: Any, shared: str | None) -> Generator[str]:
    """A directory that the executors share, and that is gone at the end."""
    if shared is not None:
        name = f"kipcheck-{uuid4().hex}"
        folder = Local(local(shared)) if is_local(shared) else Hadoop(shared.rstrip("/"), spark)
        try:
            yield f"{shared.rstrip('/')}/{name}"
        finally:
            folder.remove(name)
    elif spark.sparkContext.master.startswith("local"):
        with TemporaryDirectory(prefix="kipcheck-") as directory:
            yield f"{directory}/data"
    else:
        raise DataSetError(f"{spark.sparkContext.master}: name a directory that all its executors share: --scratch URL")


@contextmanager
def _reached(name: str, manifest: Manifest, spark: Any, scratch: str | None) -> Generator[str]:
    """Where tasks can open the files of the data set ``name``: there, or in a copy of it where only Hadoop reaches it."""
    if is_local(name) or is_reached(f"{name}/{NAME}"):
        yield name
        return
    with _scratch(spark, scratch) as copy:
        if not is_local(copy):
            raise DataSetError(f"{copy}: pyarrow does not reach this file system: take another one for --scratch")
        for part in manifest.parts:
            target = Path(local(copy), part.path).absolute()
            target.parent.mkdir(parents=True, exist_ok=True)
            Hadoop(name.rstrip("/"), spark).fetch(part.path, str(target))
        yield copy


def _report(
    name: str,
    root: str,
    manifest: Manifest,
    inputs: tuple[Input, ...],
    settings: Settings,
    waivers: Sequence[Waiver],
    today: date,
    spark: Any,
    tables: str | None,
) -> Report:
    sampler, missing = Sampler(), Missing()
    wanted, known, covering = {waiver.fingerprint for waiver in waivers}, set[str](), in_force(waivers, today)
    with ExitStack() as stack:
        files = [f"{tables}.{name}.parquet" for name in ("groups", "findings")] if tables is not None else []
        written = [Table(file, schema) for file, schema in zip(files, (group_schema(), finding_schema()), strict=False)]
        for table in written:
            stack.callback(table.drop)
        for result in run(root, manifest, settings, spark, missing):
            known |= {finding.fingerprint for finding in result.findings} & wanted
            group, waived = waive(result, covering)
            sampler.add(group, waived)
            if written:
                covered = {entry.finding.fingerprint: entry for entry in waived}
                written[0].add(group_row(group))
                for finding in group.findings:
                    written[1].add(finding_row(finding, covered.get(finding.fingerprint)))
        for table in written:
            table.finish()
    sample = sampler.sample(files)
    tabled = [f"all groups and findings as Parquet: {' and '.join(files)}"] if files and sample is None else []
    return Report(
        command="validate",
        version=version("kipcheck"),
        verdict=worst(sampler.verdicts),
        inputs=(*inputs, *_unread(name, manifest, missing)),
        groups=sampler.groups,
        waived=sampler.waived,
        notes=(*remarks(waivers, known, today), *_left_out(missing), *tabled),
        sample=sample,
    )


def _unread(name: str, manifest: Manifest, missing: Missing) -> list[Input]:
    files = sorted((manifest.parts[part].path, why) for part, why in missing.files.items())
    return [Input(path=f"{name}/{path}", format="data set", problem=why) for path, why in files]


def _left_out(missing: Missing) -> list[str]:
    if not missing.files:
        return []
    names = sorted(missing.groups)
    some = ", ".join(group if cluster == "default" else f"{cluster}/{group}" for cluster, group in names[:NAMED])
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    lost = "groups of which all events are in files that can't be read are not named here"
    return [f"left out, as events of theirs may be lost: {some}{more}; {lost}" if names else lost]
