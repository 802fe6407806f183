import asyncio
import signal
import subprocess
import sys
import zlib

import psutil
import pytest

from pipeline.sources.extract import Extracted, Extractor

GOOD = (
    b"<html><body>" + b"<p>The office is closed on Monday, and it opens again on Tuesday.</p>" * 4 + b"</body></html>"
)
SLOW = b"<p " + b" ".join(b"a%d=1" % number for number in range(300_000)) + b">text</p>"  # quadratic in libxml2
DEEP = b"<html><body>" + b"<div>" * 100_000 + b"text in the depth" + b"</div>" * 100_000
DIES_WITH_ITS_PARENT = """
import asyncio, sys
from pipeline.sources.extract import Extractor
from tests.pipeline.sources.test_extractor import GOOD, SLOW, html
async def main():
    async with Extractor(workers=1) as extractor:
        await html(extractor, GOOD)
        print([worker.process.pid for worker in extractor.running][0], flush=True)
        await html(extractor, SLOW)
asyncio.run(main())
"""


def pdf_bomb(megabytes: int) -> bytes:
    """A PDF of one page, a thousandth of what its text is unpacked; readers mend its missing table of objects."""
    packer = zlib.compressobj(9)
    start = packer.compress(b"BT /F1 10 Tf 40 700 Td ") + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(b"(bomb) Tj " * 100_000) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = start + piece * megabytes + packer.compress(b"ET")  # without its end, which no reader asks for
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 5 0 R/Resources<</Font<</F1 3 0 R>>>>>>"
    objects = [
        b"1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj",
        b"2 0 obj <</Type/Pages/Kids[4 0 R]/Count 1>> endobj",
        b"3 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj",
        b"4 0 obj %s endobj" % page,
        b"5 0 obj <</Filter/FlateDecode/Length %d>> stream\n%s\nendstream endobj" % (len(packed), packed),
    ]
    return b"\n".join([b"%PDF-1.4", *objects, b"trailer <</Root 1 0 R>>", b"%%EOF"])


async def html(extractor: Extractor, body: bytes) -> Extracted:
    return await extractor.extract(body, "text/html", "utf-8", "https://a.example/")


def test_documents_are_extracted_side_by_side_in_processes_that_are_used_again() -> None:
    async def work() -> tuple[list[Extracted], set[int], set[int]]:
        async with Extractor(workers=2) as extractor:
            await html(extractor, GOOD)
            before = {worker.process.pid for worker in extractor.running}
            found = await asyncio.gather(*(html(extractor, body) for body in [GOOD, DEEP, b"", GOOD, GOOD]))
            return found, before, {worker.process.pid for worker in extractor.running}

    found, before, after = asyncio.run(work())
    assert [each.reason for each in found] == ["page", "parser_failed", "empty", "page", "page"]
    assert found[0].text.count("opens again") == 4
    assert before <= after
    assert len(after) <= 2
    assert not any(psutil.pid_exists(pid) for pid in after)


@pytest.mark.rare
@pytest.mark.skipif(sys.platform == "win32", reason="no such limit on Windows")
def test_a_document_that_hangs_a_parser_or_unpacks_to_gigabytes_is_given_up_and_the_next_one_is_read() -> None:
    bomb = pdf_bomb(3_000)
    assert len(bomb) < 10 << 20

    async def work() -> list[Extracted]:
        async with Extractor(workers=1, seconds=3) as extractor:
            found = await extractor.extract(bomb, "application/pdf", "", "https://a.example/bomb.pdf")
            return [found, await html(extractor, SLOW), await html(extractor, b"")]

    unpacked, hung, next_one = asyncio.run(work())
    assert unpacked.reason in ("parser_failed", "parser_timeout")
    assert (hung.reason, hung.detail) == ("parser_timeout", "no parser came to an end with it in 3 s")
    assert next_one.reason == "empty"


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit on Windows")
@pytest.mark.rare
def test_time_that_a_busy_machine_takes_away_from_a_parser_does_not_count() -> None:
    async def work() -> tuple[Extracted, Extracted]:
        async with Extractor(workers=1, seconds=1) as extractor:
            await html(extractor, b"")
            (worker,) = extractor.running
            worker.process.send_signal(signal.SIGSTOP)
            asyncio.get_running_loop().call_later(1.5, worker.process.send_signal, signal.SIGCONT)
            return await html(extractor, b""), await html(extractor, SLOW)

    stopped, hung = asyncio.run(work())
    assert (stopped.reason, hung.reason) == ("empty", "parser_timeout")


def test_a_process_that_is_killed_costs_at_most_the_document_it_was_at() -> None:
    async def work() -> tuple[Extracted, Extracted]:
        async with Extractor(workers=1) as extractor:
            await html(extractor, b"")
            (idle,) = extractor.running
            idle.process.kill()
            await idle.process.wait()
            found = await html(extractor, GOOD)
            (busy,) = extractor.running
            lost = asyncio.create_task(html(extractor, SLOW))
            while extractor.free.qsize():
                await asyncio.sleep(0)
            busy.process.kill()
            return found, await lost

    found, lost = asyncio.run(work())
    assert (found.reason, lost.reason) == ("page", "parser_failed")


@pytest.mark.rare
@pytest.mark.skipif(sys.platform == "win32", reason="no such signals on Windows")
def test_a_process_at_work_ends_with_the_one_that_started_it() -> None:
    parent = subprocess.Popen([sys.executable, "-c", DIES_WITH_ITS_PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent, parent.stdout:
        worker = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    _, alive = psutil.wait_procs([worker], timeout=120)
    assert alive == []


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit on Windows")
def test_a_process_that_holds_its_lock_is_ended_by_the_system() -> None:
    code = "from pipeline.sources.extract import limit_processor_time as limit; limit(0)\nwhile True: pass"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGXCPU
