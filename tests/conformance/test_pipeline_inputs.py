"""From paths and URLs to captured files, as the local engine finds them and as Hadoop lists them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kipcheck.conformance.pipeline import inputs
from kipcheck.conformance.pipeline.inputs import File, found, is_local, local
from kipcheck.conformance.readers.paths import NoSuchFile, expand


def no_session() -> NoReturn:
    raise AssertionError("local paths need no Spark")


def names(entries: list[File | NoSuchFile]) -> list[str]:
    return [f"{entry.path}: {entry.problem}" if isinstance(entry, NoSuchFile) else entry.path for entry in entries]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.log", "a.log", "a.log.2", "a.log.1.gz", "sub/c.log", ".hidden", "_odd", "with space,[x].log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "again.log").symlink_to(tmp_path / "b.log")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "void").mkdir()
    return tmp_path


def test_local_paths_are_found_as_the_local_engine_finds_them(folder: Path) -> None:
    paths = [f"{folder}/*.log", str(folder), f"{folder}/void", f"{folder}/missing", f"{folder}/*.none", f"{folder}/.hidden"]
    files = [*found(paths, no_session)]
    assert names(files) == [f"{p.path}: {p.problem}" if isinstance(p, NoSuchFile) else p for p in expand(paths)]
    sizes = {os.path.basename(file.path): file.size for file in files if isinstance(file, File)}
    assert sizes["a.log.1.gz"] == len("a.log.1.gz")
    assert sizes["dangling"] == 0


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "file://localhost{}", "FILE:{}"])
def test_a_file_url_is_a_local_path(folder: Path, form: str) -> None:
    url = form.format(folder / "a.log")
    assert is_local(url)
    assert local(url) == str(folder / "a.log")
    assert names([*found([url, str(folder / "a.log")], no_session)]) == [str(folder / "a.log")]


def test_a_relative_path_keeps_its_name_and_knows_its_place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (file,) = found(["a.log", "sub/../a.log"], no_session)
    assert isinstance(file, File)
    assert (file.path, file.location) == ("a.log", str(folder / "a.log"))
    assert file.modified_at.timestamp() == pytest.approx((folder / "a.log").stat().st_mtime, abs=1e-5)


def test_a_name_that_looks_like_a_url(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "s3:").mkdir()
    (folder / "s3:" / "x.log").write_text("x")
    monkeypatch.chdir(folder)
    assert names([*found(["s3:/x.log"], no_session)]) == ["s3:/x.log"]
    assert not is_local("s3://bucket/x.log")
    assert is_local("C:x.log")


def test_pyarrow_reaches_what_it_knows(folder: Path) -> None:
    assert not inputs.is_reached("viewfs://nowhere/a.log")
    with inputs.opened(str(folder / "a.log")) as stream:
        assert stream.read() == b"a.log"


@pytest.mark.spark
def test_hadoop_lists_another_file_system(spark: Any, folder: Path) -> None:
    mounted(spark, folder, "listed")
    (folder / "dangling").unlink()
    url = "viewfs://listed/data"
    paths = [f"{url}/*.log", url, f"{url}/void", f"{url}/missing", f"{url}/*.none", f"{url}/_odd", "nosuch://x/y"]
    files = [*found(paths, lambda: spark)]
    assert names(files) == [
        *(f"{url}/{name}" for name in ("a.log", "again.log", "b.log", "with space,[x].log")),
        *(f"{url}/{name}" for name in ("a.log.2", "a.log.1.gz", "sub/c.log")),
        f"{url}/void: the directory holds no file to read",
        f"{url}/missing: no such file or directory",
        f"{url}/*.none: the glob matches no file",
        f"{url}/_odd",
        'nosuch://x/y: No FileSystem for scheme "nosuch"',
    ]
    here = folder / "a.log"
    (file,) = found([f"{url}/a.log"], lambda: spark)
    assert isinstance(file, File)
    assert (file.size, file.modified // 1_000_000) == (5, int(here.stat().st_mtime))


def mounted(spark: Any, folder: Path, name: str) -> None:
    """``viewfs://NAME/data`` is ``folder``: a file system that nobody but Hadoop knows."""
    spark._jsc.hadoopConfiguration().set(f"fs.viewfs.mounttable.{name}.link./data", folder.as_uri())
