"""Other people's statistics, loaded when a test first asks for them: together they take seconds."""

from importlib import import_module
from typing import Any

MODULES = {
    "krippendorff": "krippendorff",
    "stats": "scipy.stats",
    "optimize": "scipy.optimize",
    "metrics": "sklearn.metrics",
    "inter_rater": "statsmodels.stats.inter_rater",
    "multitest": "statsmodels.stats.multitest",
    "proportion": "statsmodels.stats.proportion",
}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(name)
    return import_module(MODULES[name])
