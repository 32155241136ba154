"""The site builds strictly, and its pages are whole in a browser and ask no other host."""

import contextlib
import http.server
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from filelock import FileLock

from tests.nmt.serving.browser import AVAILABLE, chromium
from tests.parameters import slow

ROOT = Path(__file__).parents[1]
GUIDES = ("layer", "api", "layer-notebook", "coming-from")
PAGES = ("", *(f"docs/{name}/" for name in GUIDES), "experiments/results/multi30k/report/")
WIDTHS = (1280, 390)
BROKEN = """const broken = [...document.images].filter(i => !i.complete || !i.naturalWidth);
return broken.map(each => each.src)"""
SCROLLED = """const place = '.md-content pre code, .md-content .md-typeset__scrollwrap';
const found = [...document.querySelectorAll(place)];
return found.filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.innerText)"""
SMALL = """const pictures = [...document.querySelectorAll('.md-content img')];
return pictures.filter(each => !each.closest('a')).length"""
NAMES = """const names = [...document.querySelectorAll('code.name')];
return names.filter(each => each.getClientRects().length > 1).length"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built once, as by `make docs`; processes of pytest-xdist share it."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with FileLock(folder / "site.lock"):
        if not (folder / "site.built").exists():
            for command in (["docs/site.py"], ["-m", "zensical", "build", "--strict", "--clean"]):
                run = subprocess.run(
                    [sys.executable, *command], cwd=ROOT, capture_output=True, text=True
                )
                assert run.returncode == 0, run.stdout + run.stderr
            (folder / "site.built").touch()
    return ROOT / "build" / "site"


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def served(folder):
    """The address of a server of a folder."""
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Handler, directory=str(folder))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_the_site_has_the_api_the_notebook_and_the_pictures_of_every_report(site):
    api = (site / "docs" / "api" / "index.html").read_text("utf-8")
    assert 'id="rmsnorm_tf.RMSNormalization"' in api
    assert "&gt;&gt;&gt;" not in api and "doctest" not in api
    assert "NoReturn" not in api  # of what raises an error on other backends than TensorFlow
    notebook = (site / "docs" / "layer-notebook" / "index.html").read_text("utf-8")
    assert "RMSNormalization" in notebook and '"cell_type"' not in notebook
    assert len(list((site / "docs").glob("layer-[0-9]*.png"))) == 1
    for report in (ROOT / "experiments" / "results").glob("*/report.md"):
        place = report.relative_to(ROOT).parent
        assert (site / place / "report" / "index.html").is_file()
        for picture in report.parent.glob("*.png"):
            assert (site / place / picture.name).is_file()


@pytest.mark.skipif(not AVAILABLE, reason="needs Debian's packages chromium and chromium-driver")
@pytest.mark.parametrize("scheme", ["light", *slow("dark")])
def test_pages_fit_their_window_and_nothing_on_them_is_broken(site, scheme):
    with served(site) as address, chromium() as browser:
        browser.command(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        for width in WIDTHS:
            browser.command(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=900,
                deviceScaleFactor=1,
                mobile=width < 800,
            )
            for page in PAGES:
                browser.open(address + page)
                browser.until("return document.readyState === 'complete'")
                assert browser.run(
                    "return document.documentElement.scrollWidth <= window.innerWidth"
                ), (page, width)
                assert browser.run(BROKEN) == [] and not browser.run(SMALL), page
                assert width < 1280 or browser.run(SCROLLED) == [], page
                assert browser.run(NAMES) == 0, page
                requests = browser.run(
                    "return performance.getEntriesByType('resource').map(each => each.name)"
                )
                assert all(each.startswith((address, "data:", "blob:")) for each in requests), page
        assert browser.messages() == []
        back = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, back[4:-1].split(",")[:3])) < 200) == (scheme == "dark")


@pytest.mark.skipif(not AVAILABLE, reason="needs Debian's packages chromium and chromium-driver")
@pytest.mark.parametrize(
    "query, place",
    [
        ("epsilon", "/docs/layer/"),
        ("--beam_size", "/docs/nmt/"),
        ("make reproduce", "/experiments/"),
        ("skip_thoughts", "/experiments/"),
        ("attentive reader", "/experiments/"),
    ],
)
def test_search_finds_the_guides(site, query, place):
    results = (
        "[...document.querySelectorAll('body > div')].find(each => each.shadowRoot).shadowRoot"
    )
    links = f"return [...{results}.querySelectorAll('a')].map(each => each.pathname)"
    with served(site) as address, chromium() as browser:
        browser.command(
            "Emulation.setDeviceMetricsOverride",
            width=1280,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        browser.open(address)
        browser.until(
            "const b = document.querySelector('.md-search__button'); b?.click(); return b"
        )
        browser.until(f"return {results}.activeElement?.tagName === 'INPUT'")
        for key in query:
            browser.press(key)
        found = browser.until(
            f"const found = (() => {{ {links} }})(); return found.includes('{place}') && found"
        )
        assert found[0].startswith("/docs/") or place == "/experiments/"
        assert not any(each.startswith("/experiments/results/multi") for each in found)
