"""The timeline in a browser: it draws, and names from files are text there and nothing else."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from hwmodel.engine.trace import SequenceTrace, Span, Trace
from hwmodel.report.timeline import Section
from hwmodel.report.timeline_page import timeline_page
from hwmodel.schedules.plan import FULL, Plan, Task, TaskInfo

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOSTILE = (
    "</script><script>document.title='run'</script>",
    "<img src=x onerror=document.title='run'>",
    "line\u2028separator",
    "<b>bold</b><a href='javascript:document.title=1'>link</a><br>",
    "%{x} &lt;i&gt; {{y}}",
)


def run_of(names: tuple[str, ...]) -> SequenceTrace:
    """A run in which everything that has a name has each of these."""
    tasks = tuple(
        Task(
            name,
            f"stream {name}",
            name,
            10**9,
            ((f"resource {name}", FULL // 2),),
            info=TaskInfo(name, name, 1, 10, 10, name, name, ((name, 1), ("other", 2))),
        )
        for name in names
    )
    spans = tuple(Span(n, 0, 10**9, 10**9) for n in range(len(names)))
    return SequenceTrace("run", tuple((Trace(Plan(name, tasks), spans, 0), 2) for name in names))


def page_of(tmp_path: Path, names: tuple[str, ...]) -> Path:
    """A page with these names in every place that shows one."""
    run = run_of(names)
    title = " ".join(names)
    text = timeline_page(
        title,
        [Section(name, run, {"gemm": run.makespan_picoseconds}, 1.5, detail=name) for name in names[:2]],
        facts=[(name, name) for name in names],
        notes=names,
    )
    path = tmp_path / "timeline.html"
    path.write_text(text, encoding="utf-8")
    return path


class Elements(HTMLParser):
    """Names of elements and attributes, and the text outside scripts and styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._silent = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._silent = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.text += data


def elements(text: str) -> Elements:
    parser = Elements()
    parser.feed(text)
    return parser


def test_the_page_draws_a_bar_for_each_task(browser_dump: Callable[[Path], str], tmp_path: Path) -> None:
    names = ("gemm", "amax", "collective")
    dom = browser_dump(page_of(tmp_path, names))
    drawn = re.findall(r'<g class="point"[^>]*><path[^>]* d="M[^"]+', dom)
    assert len(drawn) >= 2 * len(names) * len(names)
    assert "main-svg" in dom
    assert 'class="legend' in dom


def test_hostile_names_are_text_and_run_nothing(browser_dump: Callable[[Path], str], tmp_path: Path) -> None:
    dom = elements(browser_dump(page_of(tmp_path, HOSTILE)))
    assert not {"img", "iframe", "object", "embed"} & set(dom.tags)
    assert dom.tags.count("script") == 2
    assert not [name for name, _ in dom.attributes if name.startswith("on")]
    links = [value or "" for name, value in dom.attributes if name in ("href", "src", "xlink:href", "action")]
    assert all(link.startswith("data:image/png;base64,") for link in links)  # the strips of resources
    for name in HOSTILE:
        # Heading, notes, facts, tables; then titles of sections, lanes and the legend of the chart.
        assert dom.text.count(name) >= 8, name


def test_hostile_names_are_text_in_the_hover(browser_dump: Callable[[Path], str], tmp_path: Path) -> None:
    path = page_of(tmp_path, HOSTILE)
    plain = elements(browser_dump(path))
    text = path.read_text(encoding="utf-8")
    # The page's policy lets no other script run, so the test's own needs it out of the way.
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    hovering = """
    (async () => {
      const chart = document.getElementById("timeline");
      const shown = document.createElement("pre");
      const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));
      for (let n = 0; n < chart.data.length; n++) {
        if (chart.data[n].type !== "bar" || !chart.data[n].customdata || chart.data[n].xaxis !== "x") continue;
        await pause(200);
        Plotly.Fx.hover(chart, [{curveNumber: n, pointNumber: 0}]);
        await pause(200);
        shown.textContent += [...chart.querySelectorAll(".hoverlayer text")].map(t => t.textContent).join("|") + "\\n";
        shown.textContent += "ELEMENTS " + chart.querySelectorAll(".hoverlayer a, .hoverlayer img").length + "\\n";
      }
      document.body.append(shown);
    })();
    """
    hover = tmp_path / "hover.html"
    hover.write_text(text.replace("</body>", f"<script>{hovering}</script></body>"), encoding="utf-8")
    dom = elements(browser_dump(hover))
    assert not {"img", "iframe"} & set(dom.tags)
    assert "ELEMENTS 0" in dom.text
    assert "ELEMENTS 1" not in dom.text
    for name in HOSTILE:
        assert dom.text.count(name) > plain.text.count(name) + 3, name


def test_the_picture_is_not_empty(browser_screenshot: Callable[[Path, Path], None], tmp_path: Path) -> None:
    picture = tmp_path / "timeline.png"
    browser_screenshot(page_of(tmp_path, ("gemm", "amax")), picture)
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_can_end_the_pages_scripts(name: str) -> None:
    page = timeline_page(name, [Section(name, run_of((name,)))])
    assert elements(page).tags.count("script") == 2
    assert "\u2028" not in re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)[1]
