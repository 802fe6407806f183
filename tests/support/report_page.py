"""A page as tests read it."""

from html.parser import HTMLParser


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[int] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.parents: list[int] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parents.append(self.open[-1] if self.open else -1)
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self.texts.append("")
        if tag not in {"meta", "input", "br", "link", "img"}:
            self.open.append(len(self.tags) - 1)

    def handle_endtag(self, tag: str) -> None:
        assert self.tags[self.open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for place in self.open:
            self.texts[place] += data

    def all(self, tag: str) -> list[tuple[dict[str, str], str]]:
        return [
            (attributes, text)
            for (name, attributes), text in zip(self.tags, self.texts, strict=True)
            if name == tag.lower()
        ]

    def ancestors(self, place: int) -> set[int]:
        """Places of the elements that hold the one at a place."""
        parent = self.parents[place]
        return set() if parent < 0 else {parent, *self.ancestors(parent)}

    @property
    def text(self) -> str:
        return self.all("main")[0][1]
