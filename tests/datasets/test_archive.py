"""LibriSpeech's archives: downloads from a local server that break off, unpacking that is safe."""

import hashlib
import http.server
import io
import shutil
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ntkcond.datasets.speech import archive, corpus
from ntkcond.datasets.speech.subsets import SUBSETS, Subset
from ntkcond.run.errors import UserError
from speech import write_corpus

NOWHERE = "http://127.0.0.1:9"


def packed(folder: Path, extra: dict[str, bytes] | None = None) -> bytes:
    """An archive of LibriSpeech/tiny, as the real ones are, and of extra members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.add(folder.parent, "LibriSpeech")
        for name, content in (extra or {}).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


class Server(http.server.BaseHTTPRequestHandler):
    """Serves `content` for any path; asked for a part, gives it, unless `whole`. Breaks off after
    `most` bytes."""

    content = b""
    most: int | None = None
    whole = False
    asked: list[str]

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.asked.append(wanted)
        start = 0 if self.whole else int(wanted.removeprefix("bytes=").removesuffix("-"))
        if start >= len(self.content):
            self.send_error(416)
            return
        self.send_response(200 if self.whole else 206)
        self.send_header("Content-Length", str(len(self.content) - start))
        self.send_header("Content-Encoding", "x-gzip")  # as some say of any .tar.gz
        if not self.whole:
            last, total = len(self.content) - 1, len(self.content)
            self.send_header("Content-Range", f"bytes {start}-{last}/{total}")
        self.end_headers()
        end = None if self.most is None else start + self.most
        self.wfile.write(self.content[start:end])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server of the archive of a subset, tiny, that counts as published; its address."""
    made = write_corpus(tmp_path / "made", subset="tiny")
    (made.parent / "LICENSE.TXT").write_text("CC BY 4.0")
    handler = type("Handler", (Server,), {"content": packed(made), "asked": []})
    publish(monkeypatch, handler.content)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, args=(0.05,), daemon=True).start()
        yield handler, f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


def publish(monkeypatch, content: bytes) -> None:
    md5 = hashlib.md5(content).hexdigest()
    monkeypatch.setitem(SUBSETS, "tiny", Subset(len(content), md5, 12, 4, 0.002))


def flac(folder: Path) -> dict[str, bytes]:
    files = (Path(entry.path) for entry in corpus.files_in(folder))
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def leftovers(data_dir: Path) -> list[str]:
    """But for the lock, which stays."""
    names = {path.name for path in (data_dir / "LibriSpeech").iterdir()}
    return sorted(names - {".tiny.lock"})


def test_a_subset_is_downloaded_checked_and_unpacked(server, tmp_path):
    _, address = server
    with pytest.raises(UserError, match=rf"\({NOWHERE}/tiny.tar.gz: Connection refused\)"):
        archive.obtain("tiny", tmp_path / "data", [NOWHERE])
    archive.obtain("tiny", tmp_path / "data", [NOWHERE, address + "/"])
    folder = tmp_path / "data/LibriSpeech/tiny"
    assert flac(folder) == flac(tmp_path / "made/LibriSpeech/tiny")
    assert leftovers(tmp_path / "data") == ["LICENSE.TXT", "tiny"]
    assert corpus.state(folder) == "as published"


@pytest.mark.parametrize("whole", [False, True], ids=["in parts", "only whole"])
def test_a_download_that_broke_off_goes_on_where_it_was(server, tmp_path, whole):
    handler, address = server
    half = len(handler.content) // 2
    handler.most = half
    with pytest.raises(UserError, match=r"the download ended at .* Run again: it") as caught:
        archive.obtain("tiny", tmp_path, [address])
    part = tmp_path / "LibriSpeech/tiny.tar.gz.part"
    assert part.read_bytes() == handler.content[:half]
    for said in (str(part), address, "put tiny.tar.gz", "data_dir", "mirror"):
        assert said in str(caught.value)
    handler.most, handler.whole = None, whole
    archive.obtain("tiny", tmp_path, [address])
    assert handler.asked == ["bytes=0-", f"bytes={half}-"]
    assert leftovers(tmp_path) == ["LICENSE.TXT", "tiny"]


def test_the_next_mirror_goes_on_where_the_first_broke_off(server, tmp_path):
    handler, address = server
    handler.most = len(handler.content) // 2 + 1
    archive.obtain("tiny", tmp_path, [address, address])
    assert leftovers(tmp_path) == ["LICENSE.TXT", "tiny"]


@pytest.mark.parametrize("longer", [0, 1000], ids=["other bytes", "more bytes"])
def test_another_file_than_the_published_one_is_refused_and_deleted(server, tmp_path, longer):
    handler, address = server
    handler.content = handler.content[:-1] + b"!" + bytes(longer)
    message = "it has another file" if longer else "not the published archive"
    with pytest.raises(UserError, match=message):
        archive.obtain("tiny", tmp_path, [address])
    assert not (tmp_path / "LibriSpeech/tiny").exists()
    part = tmp_path / "LibriSpeech/tiny.tar.gz.part"
    assert not part.exists() or not part.stat().st_size


def test_an_archive_of_ones_own_is_unpacked_and_stays(server, tmp_path):
    handler, _ = server
    provided = tmp_path / "data/tiny.tar.gz"
    provided.parent.mkdir()
    provided.write_bytes(handler.content)
    archive.obtain("tiny", tmp_path / "data", [NOWHERE])
    assert flac(tmp_path / "data/LibriSpeech/tiny") == flac(tmp_path / "made/LibriSpeech/tiny")
    assert provided.is_file()
    shutil.rmtree(tmp_path / "data/LibriSpeech")
    provided.write_bytes(handler.content[:-9])
    with pytest.raises(UserError, match=f"{provided}: not the published archive.*Delete it"):
        archive.obtain("tiny", tmp_path / "data", [NOWHERE])
    assert provided.is_file()


def test_a_corpus_that_is_there_is_not_touched(tmp_path):
    folder = write_corpus(tmp_path)
    before = flac(folder)
    archive.obtain(folder.name, tmp_path, [NOWHERE])
    assert flac(folder) == before


@pytest.mark.parametrize(
    "name", ["../escaped.flac", "/tmp/escaped.flac", "LibriSpeech/../../escaped.flac"]
)
def test_paths_that_leave_the_folder_are_refused_with_all_the_rest(
    server, tmp_path, monkeypatch, name
):
    handler, address = server
    handler.content = packed(tmp_path / "made/LibriSpeech/tiny", {name: b"fLaC"})
    publish(monkeypatch, handler.content)
    with pytest.raises(UserError, match="would leave the folder or is no plain file") as caught:
        archive.obtain("tiny", tmp_path / "data", [address])
    assert repr(name) in str(caught.value)
    assert not list(tmp_path.rglob("escaped*"))
    assert not Path("/tmp/escaped.flac").exists()
    assert leftovers(tmp_path / "data") == ["tiny.tar.gz.part"]


def test_an_archive_of_something_else_is_refused(server, tmp_path, monkeypatch):
    handler, address = server
    other = write_corpus(tmp_path / "other", subset="another")
    handler.content = packed(other)
    publish(monkeypatch, handler.content)
    with pytest.raises(UserError, match="has 0 utterances in LibriSpeech/tiny, not the 12"):
        archive.obtain("tiny", tmp_path / "data", [address])


def test_a_disk_too_small_is_said_before_the_download(server, tmp_path, monkeypatch):
    handler, address = server
    usage = shutil.disk_usage(tmp_path)._replace(free=int(1.9 * len(handler.content)))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UserError, match=r"of disk, .* are free. Free some space, or set data_dir"):
        archive.obtain("tiny", tmp_path, [address])
    assert not handler.asked
    part = tmp_path / "LibriSpeech/tiny.tar.gz.part"  # as if a good deal had come before
    part.write_bytes(handler.content[: len(handler.content) // 2])
    archive.obtain("tiny", tmp_path, [address])


@pytest.mark.parametrize("provided", [True, False], ids=["own archive", "download"])
def test_jobs_that_want_the_same_subset_at_once_all_get_it_whole(server, tmp_path, provided):
    handler, address = server
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    if provided:
        (data_dir / "tiny.tar.gz").write_bytes(handler.content)
    with ThreadPoolExecutor(4) as pool:  # each opens the lock's file for itself, as processes do
        jobs = [pool.submit(archive.obtain, "tiny", data_dir, [address]) for _ in range(4)]
        for job in jobs:
            job.result()
    assert flac(data_dir / "LibriSpeech/tiny") == flac(tmp_path / "made/LibriSpeech/tiny")
    assert len(handler.asked) == (0 if provided else 1)


def test_what_came_before_outlasts_an_address_that_has_something_else(server, tmp_path):
    """A login page, say; or another release of the archive."""
    handler, address = server
    half = len(handler.content) // 2
    part = tmp_path / "LibriSpeech/tiny.tar.gz.part"
    part.parent.mkdir()
    part.write_bytes(handler.content[:half])
    for whole, content in ((True, b"<html>Log in"), (False, handler.content * 2)):
        other = type("Other", (Server,), {"content": content, "asked": [], "whole": whole})
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), other) as httpd:
            threading.Thread(target=httpd.serve_forever, args=(0.05,), daemon=True).start()
            with pytest.raises(UserError, match="it has another file"):
                archive.obtain("tiny", tmp_path, [f"http://127.0.0.1:{httpd.server_port}"])
            httpd.shutdown()
        assert part.read_bytes() == handler.content[:half]
    archive.obtain("tiny", tmp_path, [address])
    assert handler.asked == [f"bytes={half}-"]


def test_a_part_that_is_longer_than_the_whole_is_begun_anew(server, tmp_path):
    handler, address = server
    part = tmp_path / "LibriSpeech/tiny.tar.gz.part"
    part.parent.mkdir()
    part.write_bytes(bytes(len(handler.content) + 10))
    archive.obtain("tiny", tmp_path, [address])
    assert handler.asked == ["bytes=0-"]


def test_an_unknown_subset_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"publishes no subset train-100\. Available: dev"):
        archive.obtain("train-100", tmp_path)
