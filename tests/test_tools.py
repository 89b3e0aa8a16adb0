"""The tools that look at a built site and at what would be published find what is wrong, and only that."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"
pytestmark = pytest.mark.skipif(not TOOLS.is_dir(), reason="the tools are part of the repository, not of the package")


def run(tool, folder):
    """The exit code of a tool on a folder, and what it says."""
    done = subprocess.run([sys.executable, TOOLS / tool, folder], capture_output=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout


@pytest.fixture
def site(tmp_path):
    """site(body): a site of two pages, of which the first has this body."""

    def write(body):
        (tmp_path / "index.html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
        (tmp_path / "other.html").write_text('<html><body id="here"><a href="index.html">back</a></body></html>', encoding="utf-8")
        return tmp_path

    return write


def test_a_sound_site_passes(site):
    """Links to pages, to places, and out of the site are fine; what is linked outside is not asked for."""
    code, said = run("local_links.py", site('<a href="other.html#here">x</a> <a href="https://example.org/">y</a>'))
    assert code == 0
    assert "2 links" in said


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ('<a href="gone.html">x</a>', "gone.html does not exist"),
        ('<a href="other.html#gone">x</a>', "other.html#gone names no place"),
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads //example.org/x.css"),
        ('<img src="gone.png">', "gone.png does not exist"),
    ],
)
def test_a_broken_or_foreign_address_is_named(site, body, complaint):
    """A page that leads nowhere, or that needs the network to be shown, fails."""
    code, said = run("local_links.py", site(body))
    assert code == 1
    assert complaint in said


@pytest.fixture
def dist(tmp_path):
    """dist(needs, names): a wheel with these requirements and further files, and an archive of the sources."""

    def write(needs=(), names=()):
        kept = ("refkernel/__init__.py", "refkernel/py.typed", "refkernel/datasets/data/seeds.csv")
        info = ("refkernel-1.dist-info/licenses/LICENSE", "refkernel-1.dist-info/entry_points.txt")
        with zipfile.ZipFile(tmp_path / "refkernel-1-py3-none-any.whl", "w") as wheel:
            for name in (*kept, *info, *names):
                wheel.writestr(name, "")
            wheel.writestr("refkernel-1.dist-info/METADATA", "".join(f"Requires-Dist: {need}\n" for need in needs))
        sources = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "tests/test_docs.py", "docs/conf.py")
        with tarfile.open(tmp_path / "refkernel-1.tar.gz", "w:gz") as archive:
            for name in (*sources, "src/refkernel/py.typed"):
                archive.addfile(tarfile.TarInfo(f"refkernel-1/{name}"))
        return tmp_path

    return write


def test_what_is_complete_may_be_published(dist):
    """Minima are fine, and so are pins of an extra that only developers install."""
    code, said = run("dist_check.py", dist(needs=["numpy>=2", "ruff==1; extra == 'check'"]))
    assert (code, said.count("bytes")) == (0, 2), said


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"needs": ["numpy<3"]}, "numpy<3, an upper bound"),
        ({"needs": ["skops==1; extra == 'save'"]}, "an upper bound"),
        ({"names": ["tests/test_x.py"]}, "holds tests/test_x.py"),
        ({"names": ["refkernel/__pycache__/x.pyc"]}, "holds refkernel/__pycache__"),
    ],
)
def test_what_must_not_be_published_is_named(dist, given, complaint):
    """Upper bounds that would bite users, tests, and leftovers of Python."""
    code, said = run("dist_check.py", dist(**given))
    assert code == 1
    assert complaint in said


def test_a_missing_file_is_named(tmp_path, dist):
    """A folder without the archive of the sources is not a release."""
    (dist() / "refkernel-1.tar.gz").unlink()
    code, said = run("dist_check.py", tmp_path)
    assert code == 1
    assert "must hold one wheel and one archive" in said
