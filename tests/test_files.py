"""Files are written whole or not at all, and an error names the file."""

import errno
import os
import sys
from pathlib import Path

import pytest

from refkernel._core import files as _files
from refkernel._core.files import append_text, replacing, write_bytes, write_text

OLD, LIMIT = "what was there before", 4096


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "page.html"
    file.write_text(OLD)
    return file


def assert_untouched(path, content=OLD):
    assert path.read_text() == content
    assert os.listdir(path.parent) == [path.name]


def test_text_and_bytes_arrive_as_they_are_and_nothing_else_is_left(path):
    assert write_text(path, "ü\r\n\n") == path
    assert path.read_bytes() == b"\xc3\xbc\r\n\n"
    write_bytes(path, memoryview(b"\x00\xff"))
    assert path.read_bytes() == b"\x00\xff"
    assert os.listdir(path.parent) == [path.name]


def test_readers_see_the_old_file_until_the_block_ends(path):
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == OLD
        assert temporary.parent == path.parent
    assert_untouched(path, "new")


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), OSError("no errno"), FileNotFoundError(2, "gone", "other.csv")])
def test_an_error_of_the_block_keeps_the_old_file_and_passes_through_unchanged(path, error):
    def write_half():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(type(error)) as caught:
        write_half()
    assert caught.value is error
    assert_untouched(path)


def test_a_write_that_finds_no_room_names_the_file_and_leaves_the_old_one(path, little_room):
    with little_room(LIMIT), pytest.raises(OSError, match=r"The report was not written: .*page\.html") as caught:
        write_text(path, "x" * 2 * LIMIT, "The report")
    assert caught.value.errno == errno.EFBIG
    assert_untouched(path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux only")
def test_a_full_disk_names_the_file_and_leaves_the_old_one(path):
    def write():
        with replacing(path) as temporary:
            temporary.symlink_to("/dev/full")
            temporary.write_text("half")

    with pytest.raises(OSError, match=r"No space left.*page\.html"):
        write()
    assert_untouched(path)


def test_data_that_the_disk_refuses_at_the_last_moment_leaves_the_old_file(path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_files.os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left.*page\.html") as caught:
        write_text(path, "new")
    assert caught.value.errno == errno.ENOSPC
    assert_untouched(path)


def test_what_is_appended_is_there_whole_or_not_at_all(path, little_room):
    append_text(path, "\none line\n")
    before = path.read_text()
    assert before == OLD + "\none line\n"
    with little_room(LIMIT), pytest.raises(OSError, match=r"was not written: .*page\.html"):
        append_text(path, "x" * 2 * LIMIT)
    assert_untouched(path, before)


def test_a_missing_folder_a_folder_and_a_device_are_refused_by_name(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing.{1,2}page\.html"):
        write_text(tmp_path / "missing" / "page.html", "new")
    with pytest.raises(IsADirectoryError, match="folder"):
        write_text(tmp_path, "new")
    if sys.platform != "win32":
        with pytest.raises(OSError, match="device"):
            write_text("/dev/null", "new")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links are POSIX's")
def test_a_replaced_file_keeps_its_mode_and_a_link_stays_a_link(path):
    path.chmod(0o640)
    link = path.with_name("link")
    link.symlink_to(path)
    write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_what_a_killed_process_left_is_removed_by_the_next_run_for_the_same_file(path):
    """Not what another process may still be writing, nor what belongs to another file."""
    left, busy, foreign = [], [], path.parent / ".00000000-left.part"
    for parts in (left, busy):
        with replacing(path) as temporary:
            temporary.write_text(OLD)
        parts.append(temporary.with_name(temporary.name))
        temporary.write_text("half")
    foreign.write_text("half")
    for abandoned in (*left, foreign):
        os.utime(abandoned, (0, 0))
    write_text(path, "new")
    assert not left[0].exists()
    assert busy[0].exists()
    assert foreign.exists()
