import json
from pathlib import Path

import pytest

from pipeline.records.schema import Passage, QueryResponse, Source
from pipeline.sources.choose import (
    PageChunks,
    PassageLimits,
    Shelf,
    Tally,
    rank_passages,
    select_passages,
    tally_lines,
)
from pipeline.sources.chunk import tokenize_chunk
from pipeline.sources.schema import Chunk, Document, SourceMeta
from pipeline.sources.store import open_store
from tests.support.places import NO_SHARED, SHARED
from tests.support.store_bench import stored_page

WICE = SHARED / "corpora" / "wice" / "dev.jsonl"


def page(name: str, *texts: str, tokens: int = 10) -> PageChunks:
    url = f"https://{name}.example/"
    chunks = [Chunk(doc_url=url, text=text, hash="sha256:0", tokens=tokens) for text in texts]
    return PageChunks(url, name, name.upper(), chunks)


def record(*held: str) -> QueryResponse:
    chunks = tuple(
        Passage(chunk_id=f"p#snippet{at}", doc_id="p", chunk_rank=at + 1, text=text, origin="snippet")
        for at, text in enumerate(held)
    )
    return QueryResponse(record_uuid="r", query="Is raw honey safe?", answer="Not for babies[1].", chunks=chunks)


def test_texts_that_match_best_come_first_and_every_page_that_was_read_has_a_passage() -> None:
    texts = ["Cars are red.", "Honey can harm babies.", "Boats are red.", "Raw honey is safe.", "Snow is cold."]
    assert rank_passages("Is raw honey safe for babies?", "", texts) == [3, 1, 0, 2, 4]
    japanese = ["東京は日本の首都です。", "蜂蜜は乳児に危険です。", "車は赤いです。"]
    assert rank_passages("乳児に蜂蜜を与えても安全ですか", "", japanese, "ja")[0] == 1
    assert rank_passages('honey" OR * NOT (', "w0 w1 [1]", ['" OR words:* NEAR(', "honey"])[0] == 1
    pages = [
        page("a", "Cars.", "Honey is raw and safe.", "Honey harms babies."),
        page("b", "Boats."),
        page("c", "Sea."),
    ]
    chosen = select_passages(record(), pages, PassageLimits(passages=4)).record.chunks
    assert [passage.chunk_id for passage in chosen] == ["a#1", "a#2", "b#0", "c#0"]
    assert [passage.chunk_rank for passage in chosen] == [1, 2, 3, 4]
    fewer = select_passages(record(), pages, PassageLimits(passages=1)).record.chunks
    assert {passage.doc_id for passage in fewer} == {"a", "b", "c"}


def test_a_page_beyond_the_tokens_is_told_and_what_the_payload_carries_stays_beside_the_page() -> None:
    pages = [page("a", "Sea.", tokens=60), page("b", "Honey.", tokens=60), page("c", "Raw honey.", tokens=40)]
    selected = select_passages(record(), pages, PassageLimits(context_tokens=110))
    assert [passage.doc_id for passage in selected.record.chunks] == ["c", "b"]
    assert selected.left_out == ("https://a.example/",)
    pages = [
        page("p", "Honey  is SAFE. ", "Raw honey [CTX_SEP] harms babies."),
        page("q", "raw honey [ctx_sep] harms babies."),
    ]
    chosen = select_passages(record("Honey is safe.", "Sea."), pages, PassageLimits()).record
    assert {passage.chunk_id: passage.origin for passage in chosen.chunks} == {
        "p#1": "page",
        "p#snippet0": "snippet",
        "p#snippet1": "snippet",
    }
    assert chosen.context_set == "Raw honey (CTX_SEP) harms babies. [CTX_SEP] Honey is safe. [CTX_SEP] Sea."


def holds_gold(chunks: list[Chunk], spans: list[tuple[int, int]]) -> bool:
    """Whether one of the chunks holds one of the sentences whole."""
    return any(
        chunk.start is not None and chunk.end is not None and chunk.start <= start and end <= chunk.end
        for chunk in chunks
        for start, end in spans
    )


@pytest.mark.skipif(not WICE.is_file(), reason=NO_SHARED)
def test_five_passages_hold_the_evidence_of_real_claims() -> None:
    claims = held = at_once = first_chunks = first_sentences = 0
    for line in WICE.read_text(encoding="utf-8").splitlines():
        claim = json.loads(line)
        if claim["label"] != "supported":
            continue
        text = "\n".join(claim["evidence"])
        starts = [sum(len(sentence) + 1 for sentence in claim["evidence"][:at]) for at in range(len(claim["evidence"]))]
        gold = {at for group in claim["supporting_sentences"] for at in group}
        spans = [(starts[at], starts[at] + len(claim["evidence"][at].rstrip())) for at in gold]
        document = Document(url="https://a.example/", text=text, source_meta=SourceMeta(domain="a.example"))
        chunks = tokenize_chunk(document, 250, 0)
        asked = QueryResponse(record_uuid="r", query=claim["claim"], answer=claim["claim"], language="en")
        pages = [PageChunks("https://a.example/", "a", "", chunks)]
        chosen = select_passages(asked, pages, PassageLimits()).record.chunks
        places = [int(passage.chunk_id.partition("#")[2]) for passage in chosen]
        claims += 1
        held += holds_gold([chunks[place] for place in places], spans)
        at_once += holds_gold([chunks[place] for place in places[:1]], spans)
        first_chunks += holds_gold(chunks[:5], spans)
        first_sentences += bool(gold & set(range(5)))
    assert claims == 115
    assert held >= 113, (held, at_once, first_chunks, first_sentences)
    assert at_once >= 100
    assert held >= first_chunks > first_sentences


@pytest.mark.parametrize("share", [0.7249, 0.9, None])
def test_the_share_of_a_page_that_was_read_is_with_its_source_and_counted(tmp_path: Path, share: float | None) -> None:
    url = stored_page().url
    cited = record().model_copy(update={"sources": (Source(n=1, url=url, host="a.de", state="unfetched"),)})
    tally = Tally()
    with open_store(tmp_path / "store.db") as store:
        store.put_page(stored_page()._replace(read_share=share))
        found = Shelf(store, {}, PassageLimits()).with_pages(cited).record
    tally.add_record(found, 0)
    (source,) = found.sources
    assert (source.state, source.read_share) == ("read", share)
    assert source.percent_read == (72 if share == 0.7249 else None)
    said = [line.partition(":")[2][:9] for line in tally_lines(tally) if line.startswith("Partly read")]
    assert said == ([f" {int(share < 0.9)} of the"] if share else [])
