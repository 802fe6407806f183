"""How much memory a process took at most: measured in a process of its own, whose peak is nobody else's."""

from pathlib import Path

import pytest

STATUS = Path("/proc/self/status")
needs_proc = pytest.mark.skipif(not STATUS.is_file(), reason="/proc tells a process's peak memory")


def peak_bytes() -> int:
    """The peak of this process. Not `ru_maxrss`: a child of a large process begins with its parent's."""
    status = dict(line.split(":", 1) for line in STATUS.read_text(encoding="utf-8").splitlines())
    return int(status["VmHWM"].split()[0]) * 1024
