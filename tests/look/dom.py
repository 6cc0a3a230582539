"""HTML as a tree, by Python's own parser: enough to ask what stands where. Elements that are not
closed as they opened are an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"br", "meta", "input", "hr"})
RAW = ("style", "script")


@dataclass
class Element:
    tag: str
    attrs: dict[str, str | None]
    parts: list[Element | str] = field(default_factory=list)
    parent: Element | None = field(default=None, repr=False)

    @property
    def classes(self) -> list[str]:
        return (self.attrs.get("class") or "").split()

    @property
    def text(self) -> str:
        """What a reader sees, folded or not."""
        return "".join(
            p if isinstance(p, str) else p.text
            for p in self.parts
            if isinstance(p, str) or p.tag not in RAW
        )

    def all(self, tag: str = "", cls: str = "") -> list[Element]:
        """The elements below with this tag and class."""
        return [
            e for e in self.walk() if (not tag or e.tag == tag) and (not cls or cls in e.classes)
        ]

    def walk(self) -> Iterator[Element]:
        for part in self.parts:
            if isinstance(part, Element):
                yield part
                yield from part.walk()

    def one(self, tag: str = "", cls: str = "") -> Element:
        (found,) = self.all(tag, cls)
        return found


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = self.at = Element("", {})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, dict(attrs), parent=self.at)
        assert len(made.attrs) == len(attrs), f"<{tag}> has an attribute twice"
        self.at.parts.append(made)
        if tag not in VOID:
            self.at = made

    def handle_endtag(self, tag: str) -> None:
        assert self.at.tag == tag, f"</{tag}> within <{self.at.tag}>"
        assert self.at.parent is not None
        self.at = self.at.parent

    def handle_data(self, data: str) -> None:
        self.at.parts.append(data)


def parsed(text: str) -> Element:
    """The tree of a fragment or page; its root has no tag."""
    parser = _Parser()
    parser.feed(text)
    parser.close()
    assert parser.at is parser.root, f"<{parser.at.tag}> is not closed"
    return parser.root


def harmless(root: Element) -> None:
    """Nothing of it runs, but its own script, and nothing is fetched."""
    for e in root.walk():
        assert not [
            a
            for a in e.attrs
            if a.startswith("on") or a in ("src", "srcset", "action", "style", "ping")
        ], e.attrs
        assert all((e.attrs.get(a) or "#").startswith("#") for a in ("href", "xlink:href")), e.attrs
        assert e.tag not in (
            "iframe",
            "object",
            "embed",
            "img",
            "link",
            "base",
            "form",
            "foreignobject",
        ), e.tag
