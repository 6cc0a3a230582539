"""The site of the documents (`make docs`): its navigation has every page, links are turned and
checked, docstrings are laid out.
"""

from __future__ import annotations

import html
import importlib
import inspect
from pathlib import Path

import pytest

from website import check, docstrings, navigation, notebooks, paths, reference, signatures

from .test_public_surface import names, public_modules

pytestmark = pytest.mark.once


def test_every_page_is_in_the_navigation() -> None:
    assert navigation.missing() == [], "\n".join(navigation.missing())


def test_a_page_that_nobody_listed_is_told_with_the_line_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("docs", "notebooks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "docs/README.md").write_text(
        "# Documents\n\n## Guides\n\n- [Here](here.md): it is.\n- text [There](there.md)\n"
    )
    for name in ("docs/here.md", "docs/there.md", "notebooks/new.ipynb"):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(navigation, "ROOT", tmp_path)
    there, notebook = navigation.missing()
    assert (
        there == "docs/there.md is not in the navigation: add a line `- [Title](there.md): what the"
        " reader finds there.` under the heading of docs/README.md that fits"
    )
    assert notebook.startswith("notebooks/new.ipynb") and "](../notebooks/new.ipynb)" in notebook
    (tmp_path / "docs/README.md").write_text(
        (tmp_path / "docs/README.md").read_text() + "\n## Internals\n\n- [Here](here.md): again.\n"
    )
    assert navigation.missing()[2:] == [
        "docs/here.md is in the navigation twice: leave one of its lines in docs/README.md"
    ]


def test_the_navigation_has_generated_pages_behind_a_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/README.md").write_text(
        "# Documents\n\n## Guides\n\n- [Here](here.md): it is.\n"
    )
    monkeypatch.setattr(navigation, "ROOT", tmp_path)
    assert navigation.nav({"Guides": ["more.md"]}) == [
        "README.md",
        {"Guides": [{"Here": "here.md"}, "more.md"]},
    ]


def test_links_out_of_docs_lead_to_pages_of_the_site_or_become_text() -> None:
    text = (
        "[a](../README.md) [b](lod.md#in-a-step) [c `x[0]`](../notebooks/build.ipynb)"
        " [`LICENSE`](../LICENSE) `[d](../README.md)`"
    )
    assert (
        paths.rewritten(text, "docs/x.md")
        == "[a](project.md) [b](lod.md#in-a-step) [c `x[0]`](notebooks/build.md) `LICENSE`"
        " `[d](../README.md)`"
    )
    assert (
        paths.rewritten("[a](docs/lod.md) [N, 2] [b](LICENSE)", "README.md")
        == "[a](lod.md) [N, 2] b"
    )
    assert paths.rewritten("[a](../docs/lod.md)", "notebooks/x.ipynb") == "[a](../lod.md)"


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ('<a href="gone.html">x</a>', "links to gone.html, which is not there"),
        (
            '<a href="other.html#no">x</a>',
            "links to other.html#no, but that page has no such heading",
        ),
        ('<a href="#no">x</a>', "links to #no, but that page has no such heading"),
        (
            '<script src="https://cdn.example/x.js"></script>',
            "loads https://cdn.example/x.js from the network",
        ),
        (
            '<link rel="stylesheet" href="//cdn.example/x.css">',
            "loads //cdn.example/x.css from the network",
        ),
        (
            '<style>body { background: url("http://cdn.example/x.png") }</style>',
            "loads http://cdn.example/x.png from the network",
        ),
        (
            '<iframe srcdoc="&lt;img src=http://cdn.example/x.png&gt;"></iframe>',
            "loads http://cdn.example/x.png from the network",
        ),
    ],
)
def test_what_is_broken_in_a_built_site_is_told(tmp_path: Path, page: str, says: str) -> None:
    (tmp_path / "other.html").write_text(
        '<h2 id="yes">x</h2><a href="page.html">back</a> <a href="https://jax.dev">out</a>'
    )
    (tmp_path / "page.html").write_text('<a href="other.html#yes">x</a>')
    assert list(check.faults(tmp_path)) == []
    (tmp_path / "page.html").write_text(page)
    assert list(check.faults(tmp_path)) == [f"page.html {says}"]


def test_a_style_sheet_that_loads_from_the_network_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@import 'https://cdn.example/font.css';")
    assert list(check.faults(tmp_path)) == [
        "a.css loads https://cdn.example/font.css from the network"
    ]


def test_a_docstring_becomes_formula_arguments_and_links() -> None:
    doc = """Out = a * b < c, see :class:`Thing` and docs/lod.md.

    x: the input. y, z: two others, of one
    size: `[N, 2]`. Raises FluidValueError for others.

        x  ->  y

    - one *
    - two
    """
    link = {"Thing": "t.html", "docs/lod.md": "lod.html"}.get
    assert (
        docstrings.html(inspect.cleandoc(doc), ["x", "y", "z"], link)
        == '<p>Out = a * b &lt; c, see <a href="t.html"><code>Thing</code></a> and <a'
        ' href="lod.html"><code>docs/lod.md</code></a>.</p><dl><dt><code>x</code></dt><dd>the'
        " input.</dd><dt><code>y, z</code></dt><dd>two others, of one size: <code>[N,"
        " 2]</code>.</dd></dl><p>Raises FluidValueError for others.</p><pre><code>x  -&gt; "
        " y</code></pre><ul><li>one *</li><li>two</li></ul>"
    )


def test_every_public_name_is_explained() -> None:
    """Names of public modules; of Paddle 2's those of packages, for a module below one gives its
    names to it.
    """
    pages = reference.outline()
    entries = [entry for page in pages for _, listed in page.sections for entry in listed]
    explained = {id(entry.value) for entry in entries}
    missing = []
    for module in map(importlib.import_module, public_modules()):
        for name in (
            names(module)
            if hasattr(module, "__path__") or "fluidjax.paddle" not in module.__name__
            else ()
        ):
            value = getattr(module, name)
            ours = (
                inspect.isclass(value) or inspect.isfunction(value)
            ) and value.__module__.startswith("fluidjax")
            if ours and id(value) not in explained:
                missing.append(f"{module.__name__}.{name}")
    assert missing == [], (
        "give their modules a page: SUBJECTS, or LATER for Paddle 2's, in website/reference.py"
    )
    assert len({entry.name for entry in entries}) == len(entries) > 1400


def test_signatures_are_broken_where_they_are_long() -> None:
    def short(x: int, *, flag: bool = False) -> str: ...

    def long(
        first_of_them: int,
        second_of_them: str = "text",
        third_of_them: float = 0.5,
        *rest: str,
        last=None,
    ) -> None: ...

    assert signatures.code("a.short", short) == "a.short(x: int, *, flag: bool = False) -> str"
    assert signatures.code("long", long).splitlines() == [
        "long(", "    first_of_them: int,", "    second_of_them: str = 'text',", "    third_of_them: float = 0.5,", "    *rest: str,",
        "    last=None,", ")",
    ]  # fmt: skip


def test_cells_of_a_notebook_and_what_they_showed() -> None:
    def cell(kind: str, source: str, *outputs: dict) -> dict:
        return {"cell_type": kind, "source": source, "outputs": outputs}

    shown = {
        "output_type": "display_data",
        "data": {"text/html": ['<b title="x">a</b>\n', "b"], "text/plain": "ab"},
    }
    said = {"output_type": "stream", "text": ["1\n", "2\n"]}
    assert notebooks.parts(cell("markdown", "# Title")) == ["# Title"]
    assert notebooks.parts(cell("code", "x = 1", said, shown)) == [
        "```python\nx = 1\n```", "```text\n1\n2\n```",
        '<iframe class="output" title="what the cell shows" loading="lazy" '
        f'srcdoc="{html.escape(notebooks.FRAME)}&lt;b title=&quot;x&quot;&gt;a&lt;/b&gt;&#10;b"></iframe>',
    ]  # fmt: skip
    assert notebooks.fenced("a\n```\nb", "text") == "````text\na\n```\nb\n````"
