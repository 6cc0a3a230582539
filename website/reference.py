"""Every public name with its signature and what its docstring says, by subject: pages that `make
docs` makes anew each time.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from types import ModuleType
from typing import Any

from fluidjax.compat.compare import standing
from fluidjax.compat.recorded import find

from . import docstrings
from .paths import ROOT
from .signatures import code, parameters

# page -> title, modules of fluidjax.layers; a module that is not named here is on the last page.
FAMILIES = {
    "dense": ("Dense layers", "nn_dense"),
    "convolutions": ("Convolutions, pooling", "conv pool"),
    "normalisation": ("Normalisation", "norm"),
    "activations": ("Activations", "activation"),
    "elementwise": ("Elementwise, comparisons, sums", "elementwise compare reduce"),
    "tensors": ("Tensors and shapes", "tensor manip index pads random"),
    "losses": ("Losses and measures", "loss sampled metric_op"),
    "images": ("Images", "image resize vision regions"),
    "detection": ("Detection", "detection_boxes detection_heads proposals detection"),
    "sequences": ("Ragged sequences", "sequence sequence_metric sequence_rows ctr"),
    "recurrent": ("Recurrent networks", "rnn rnn_cells rnn_units static_rnn dynamic_rnn"),
    "decoding": ("Decoding", "decoders decoding decode_helpers"),
    "control": ("Control flow", "control_flow branches if_else loops rank_tables parallel_do"),
    "rates": ("Learning rates", "learning_rate_scheduler"),
    "distributions": ("Distributions", "distributions"),
    "others": ("Reading, Python, others", "io readers callbacks device"),
}
# page -> title, modules below fluidjax; names are explained on the first page that has them.
# "fluidjax" itself, the names at the top, comes last: most of them belong to a subject.
SUBJECTS = {
    "api/programs": ("Programs", "program framework backward input param_attr unique_name"),
    "api/running": (
        "Running programs",
        "executor compiler parallel_executor functional scope place core base.flags",
    ),
    "api/nets": ("fluid.nets", "nets"),
    "api/optimizers": ("Optimizers", "optimizer regularizer clip initializer"),
    "api/data": (
        "Data",
        (
            "reader data_feeder lod_tensor data_feed_desc incubate.data_generator dataset"
            " dataset.idx dataset.cifar dataset.common dataset.conll05 dataset.flowers"
            " dataset.image dataset.imdb dataset.imikolov dataset.mnist dataset.movielens"
            " dataset.sentiment dataset.uci_housing dataset.voc2012 dataset.wmt14 dataset.wmt16"
        ),
    ),
    "api/io": ("Saving and loading", "io saved checkpoint predictors"),
    "api/passes": ("Passes", "passes"),
    "api/transpilers": ("Transpilers", "transpiler transpiler.collective"),
    "api/dist": (
        "Several devices and processes",
        (
            "dist planning incubate.fleet.base.role_maker incubate.fleet.base.fleet_base"
            " incubate.fleet.collective"
            " incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy"
        ),
    ),
    "api/contrib": (
        "fluid.contrib",
        "contrib contrib.slim.graph contrib.slim.quantization contrib.mixed_precision",
    ),
    "api/measures": (
        "Metrics, profiles, memory",
        "metrics evaluator average profiler memory debugger compat",
    ),
    "api/errors": ("Errors", "errors"),
    "api/ir": (
        "Programs as values",
        "ir.desc ir.edit ir.walk ir.verify ir.text ir.proto ir.show ops.registry",
    ),
    "api/fluid": ("Other names of fluid", "fluidjax"),
}
# modules below fluidjax.paddle in this order; packages that are not named here follow
LATER = (
    "nn nn.functional nn.layer nn.initializer optimizer optimizer.lr static static.nn linalg io"
    " metric vision.transforms inference signal regularizer hapi distributed distributed.fleet"
    " framework compat utils"
)


@dataclass(frozen=True)
class Entry:
    """A public name, where it is explained. name: as a script writes it ("fluid.layers.fc")."""

    name: str
    value: Any
    page: str


@dataclass
class Page:
    """A page that is made: its place in the site, its title, its text."""

    path: str
    title: str
    sections: list[tuple[str, list[Entry]]] = field(default_factory=list)
    markdown: str = ""


def pages() -> list[Page]:
    """All pages."""
    found = outline()
    known = Names([entry for page in found for _, entries in page.sections for entry in entries])
    for page in found:
        page.markdown = known.written(page)
    return [overview(found), *found]


def outline() -> list[Page]:
    """All pages without their text."""
    return [page for page in (*layers(), *subjects(), *later()) if page.sections]


# What is on which page.


def load(module: str) -> ModuleType:
    return importlib.import_module("fluidjax" if module == "fluidjax" else f"fluidjax.{module}")


def public(module: ModuleType) -> list[str]:
    """``__all__``, or what the module itself defines; of a package, what it imports for others."""
    if hasattr(module, "__all__"):
        return sorted(set(module.__all__))
    names = [n for n in dir(module) if not n.startswith("_")]
    if hasattr(module, "__path__"):
        return [
            n
            for n in names
            if str(getattr(getattr(module, n), "__module__", "")).startswith(module.__name__)
        ]
    return [n for n in names if getattr(getattr(module, n), "__module__", None) == module.__name__]


def entries(module: str, prefix: str, page: str, seen: set[int]) -> list[Entry]:
    """What a module has that no page before explains. `seen` is added to."""
    found = []
    loaded = load(module)
    for name in public(loaded):
        value = getattr(loaded, name)
        explained = inspect.isclass(value) or inspect.isfunction(value)
        if explained and id(value) not in seen and value.__module__.startswith("fluidjax"):
            seen.add(id(value))
            found.append(Entry(f"{prefix}.{name}", value, page))
    return found


seen_names: set[int] = set()


def layers() -> Iterator[Page]:
    """fluid.layers, family by family."""
    import fluidjax

    seen_names.clear()
    every = fluidjax.layers
    by_module: dict[str, list[str]] = {}
    for name in public(every):
        value = getattr(every, name)
        if (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__.startswith(
            "fluidjax"
        ):
            if id(value) not in seen_names:
                seen_names.add(id(value))
                by_module.setdefault(value.__module__.removeprefix("fluidjax.layers."), []).append(
                    name
                )
    named = {module for _, modules in FAMILIES.values() for module in modules.split()}
    for path, (title, modules) in FAMILIES.items():
        page = Page(f"api/layers/{path}.md", title)
        for module in [
            *modules.split(),
            *(sorted(set(by_module) - named) if path == "others" else ()),
        ]:
            if module in by_module:
                says = first_line(
                    importlib.import_module(
                        module if "." in module else f"fluidjax.layers.{module}"
                    )
                )
                page.sections.append(
                    (
                        says,
                        [
                            Entry(f"fluid.layers.{name}", getattr(every, name), page.path)
                            for name in by_module[module]
                        ],
                    )
                )
        yield page


def subjects() -> Iterator[Page]:
    """Pages of the other modules."""
    import fluidjax

    top = {id(getattr(fluidjax, name)): name for name in fluidjax.__all__}
    for path, (title, modules) in SUBJECTS.items():
        page = Page(f"{path}.md", title)
        for module in modules.split():
            found = entries(
                module,
                "fluid" if module == "fluidjax" else f"fluid.{module}",
                page.path,
                seen_names,
            )
            if module.startswith(("ir.", "ops.")):
                found = [
                    dataclasses.replace(e, name=f"fluidjax.{e.name.removeprefix('fluid.')}")
                    for e in found
                ]
            found = [
                (
                    dataclasses.replace(e, name=f"fluid.{top[id(e.value)]}")
                    if id(e.value) in top
                    else e
                )
                for e in found
            ]
            if found:
                page.sections.append((f"{module}: {first_line(load(module))}", found))
        if path == "api/passes":
            page.sections.append(("The passes that pipelines can name", passes(page.path)))
        yield page


def passes(page: str) -> list[Entry]:
    from fluidjax.passes import PASSES

    return [Entry(name, PASSES[name], page) for name in sorted(PASSES)]


def later() -> Iterator[Page]:
    """Paddle 2's names; a large module by the modules that its functions come from."""
    packages = [
        info.name
        for info in pkgutil.walk_packages(load("paddle").__path__, "fluidjax.paddle.")
        if info.ispkg
    ]
    named = LATER.split()
    for module in (
        "",
        *named,
        *(n for n in (p.removeprefix("fluidjax.paddle.") for p in packages) if n not in named),
    ):
        name = f"paddle.{module}".rstrip(".")
        page = Page(f"paddle/{module or 'paddle'}.md", name)
        found = entries(name, name, page.path, seen_names)
        groups: dict[str, list[Entry]] = {}
        for entry in found:
            groups.setdefault(
                entry.value.__module__ if len(found) > 30 else load(name).__name__, []
            ).append(entry)
        page.sections = [
            (first_line(importlib.import_module(group)), listed)
            for group, listed in sorted(groups.items())
        ]
        if page.sections:
            yield page


def first_line(module: ModuleType) -> str:
    return re.split(r"\n\n", inspect.cleandoc(module.__doc__ or module.__name__))[0].replace(
        "\n", " "
    )


# How it is written.


class Names:
    """All entries by name, to write pages whose names lead to each other."""

    def __init__(self, all_entries: list[Entry]) -> None:
        self.entries = {entry.name: entry for entry in all_entries}
        self.by_value = {id(entry.value): entry for entry in all_entries}
        self.short: dict[str, Entry | None] = {}
        for entry in all_entries:
            last = entry.name.rpartition(".")[2]
            # a word that means two things leads nowhere
            self.short[last] = None if last in self.short else entry

    def written(self, page: Page) -> str:
        """A page as Markdown: headings, and HTML below them."""

        def link(name: str) -> str | None:
            if name.startswith("docs/"):
                return up(page.path) + re.sub(r"\.md(?=#|$)", ".html", name.removeprefix("docs/"))
            called = name.partition("(")[0].lstrip("~.")
            plain = called.replace("fluidjax.", "fluid.")
            last = called.rpartition(".")[2]
            entry = (
                self.entries.get(plain)
                or self.entries.get(called)
                or (self.short.get(last) if last[:1].isupper() else None)
            )
            return (
                None
                if entry is None
                else (
                    f"{up(page.path) if entry.page != page.path else ''}{address(entry, page.path)}"
                )
            )

        lines = [f"# {page.title}\n"]
        for title, listed in page.sections:
            heading, _, says = title.partition(": ") if ": " in title else ("", "", title)
            if len(page.sections) > 1:
                lines.append(f"## {plain(heading or says.partition('. ')[0].rstrip('.'))}\n")
            if says and (heading or len(page.sections) == 1 or ". " in says):
                lines.append(f'<p class="subject">{docstrings.inline(says, link)}</p>\n')
            for entry in listed:
                lines += list(described(entry, self.by_value, link))
        return "\n".join(lines)


def up(path: str) -> str:
    return "../" * path.count("/")


def address(entry: Entry, here: str) -> str:
    return (
        f"#{entry.name}"
        if entry.page == here
        else f"{entry.page.removesuffix('.md')}.html#{entry.name}"
    )


def plain(text: str) -> str:
    """A text without marks of code, for headings."""
    return re.sub(r"([_*<])", r"\\\1", text.replace("`", ""))


def described(entry: Entry, known: Mapping[int, Entry], link: docstrings.Link) -> Iterator[str]:
    """The heading, signature and text of one name, and for a class its members."""
    value = entry.value
    yield f"### `{entry.name}` {{#{entry.name}}}\n"
    # a pass of a pipeline
    if dataclasses.is_dataclass(value) and hasattr(value, "rewrite") and "." not in entry.name:
        options = ", ".join(f"{f.name}={f.default!r}" for f in dataclasses.fields(value))
        yield fence(f"{entry.name}({options})" if options else entry.name)
    elif not (
        inspect.isclass(value) and (issubclass(value, enum.Enum | Exception) or not own_init(value))
    ):
        yield fence(code(entry.name, value))
    yield f'<div class="doc">{text_of(value, link)}{source(entry)}</div>\n'
    if inspect.isclass(value):
        yield from members(entry, known, link)


def text_of(value: Any, link: docstrings.Link) -> str:
    doc = inspect.getdoc(value) or ""
    names = parameters(value)
    return docstrings.html(doc, names, link)


def source(entry: Entry) -> str:
    """How it stands to Paddle's, and where it is written."""
    try:
        file = str(inspect.getsourcefile(inspect.unwrap(entry.value))).removeprefix(f"{ROOT}/")
    except TypeError:
        return ""
    line = (
        f":{inspect.unwrap(entry.value).__code__.co_firstlineno}"
        if inspect.isfunction(entry.value)
        else ""
    )
    return f'<p class="source">{" · ".join(filter(None, [beside_paddle(entry.name), file + line]))}</p>'


def beside_paddle(name: str) -> str:
    """Whether a name that was recorded of Paddle takes what Paddle's does."""
    theirs = f"paddle.{name}" if name.startswith("fluid.") else name
    recorded = find(theirs) if theirs.startswith("paddle.") else None
    if recorded is None:
        return ""
    reason = standing(theirs).reason
    return escape(
        f"differs from Paddle {recorded.version}: {reason}"
        if reason
        else f"arguments as in Paddle {recorded.version}"
    )


def overview(pages: list[Page]) -> Page:
    """All names on one page, each with its first sentence."""
    page = Page("api/names.md", "All names")
    lines = ["# All names\n"]
    for other in pages:
        found = [entry for _, listed in other.sections for entry in listed]
        rows = "".join(
            f'<li><a href="{up(page.path)}{address(e, page.path)}"><code>{e.name}</code></a>'
            f" {brief(e)}</li>"
            for e in found
        )
        lines.append(f'## {plain(other.title)}\n\n<ul class="names">{rows}</ul>\n')
    page.markdown = "\n".join(lines)
    return page


def brief(entry: Entry) -> str:
    """The first sentence of its docstring."""
    first = " ".join(docstrings.blocks(inspect.getdoc(entry.value) or " ")[:1]).split()
    return docstrings.inline(
        re.split(r"(?<=[^.][.;:]) ", " ".join(first))[0].rstrip(".;:"), lambda name: None
    )


def own_init(cls: type) -> bool:
    return any("__init__" in vars(c) for c in cls.__mro__ if c.__module__.startswith("fluidjax"))


def members(entry: Entry, known: Mapping[int, Entry], link: docstrings.Link) -> Iterator[str]:
    """The public methods, properties and values of a class; what it has from a class of the
    reference stands there.
    """
    rows = []
    ours = [c for c in entry.value.__mro__ if c.__module__.startswith("fluidjax")]
    bases = [known[id(c)] for c in ours[1:] if id(c) in known]
    own = [c for c in ours if c is entry.value or id(c) not in known]
    for name in sorted({n for c in own for n in vars(c) if not n.startswith("_")}):
        value = inspect.getattr_static(entry.value, name)
        if isinstance(value, staticmethod | classmethod):
            rows.append(
                (code(name, getattr(entry.value, name)), text_of(getattr(entry.value, name), link))
            )
        elif inspect.isfunction(value):
            rows.append((code(name, value), text_of(value, link)))
        elif isinstance(value, property):
            rows.append((name, text_of(value.fget, link)))
        elif isinstance(value, enum.Enum):
            rows.append((f"{name} = {value.value!r}", ""))
    if rows:
        shown = "".join(
            f"<dt><code>{escape(head)}</code></dt><dd>{says}</dd>" for head, says in rows
        )
        yield f'<dl class="members">{shown}</dl>\n'
    if bases:
        names = ", ".join(docstrings.inline(f"`{base.name}`", link) for base in bases)
        yield f'<p class="source">has what {names} has, too</p>\n'


def fence(text: str) -> str:
    return f"```python\n{text}\n```\n"
