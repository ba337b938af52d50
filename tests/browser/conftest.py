"""A headless Chromium for tests that open a written page. Without one installed they are skipped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("chromium", "chromium-browser", "google-chrome")
HERE = Path(__file__).parent

# Nothing may reach for the network: a page has to work from a file alone.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--hide-scrollbars",
    "--window-size=1400,1000",
)
PAGE_MILLISECONDS = 10_000
"""Time on the page's own clock, which runs as fast as the page lets it."""
PATIENCE_SECONDS = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


def run_chromium(chromium: str, profile: Path, *arguments: str) -> str:
    """Standard output of one Chromium run; its whole process group ends with it, also when it hangs."""
    command = [
        chromium,
        *FLAGS,
        f"--user-data-dir={profile}",
        f"--virtual-time-budget={PAGE_MILLISECONDS}",
        *arguments,
    ]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, messages = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            pytest.fail(f"Chromium did not finish within {PATIENCE_SECONDS} seconds: {' '.join(command)}")
    assert process.returncode == 0, f"Chromium ended with {process.returncode}:\n{messages[-2000:]}"
    return output


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    pytest.skip(f"no browser on this machine (looked for {', '.join(NAMES)})")


@pytest.fixture
def browser_dump(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], str]:
    """``browser_dump(html_path)``: the page's elements as text, after its scripts have run."""

    def dump(html_path: Path) -> str:
        profile = tmp_path_factory.mktemp("profile")
        return run_chromium(chromium, profile, "--dump-dom", html_path.resolve().as_uri())

    return dump


@pytest.fixture
def browser_screenshot(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, Path], None]:
    """``browser_screenshot(html_path, png_path)``: a picture of the page, after its scripts have run."""

    def screenshot(html_path: Path, png_path: Path) -> None:
        profile = tmp_path_factory.mktemp("profile")
        run_chromium(chromium, profile, f"--screenshot={png_path.resolve()}", html_path.resolve().as_uri())
        assert png_path.stat().st_size > 0, f"Chromium wrote no picture to {png_path}"

    return screenshot
