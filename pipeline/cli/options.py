"""What the commands share: help in two sections with providers' names, the model that options name, the next step."""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click
from click.core import augment_usage_errors

from pipeline.core.terminal import printable

if TYPE_CHECKING:
    from pipeline.asking.narratives import NarrativesCsv
    from pipeline.asking.run_folder import RunManifest
    from pipeline.providers import ChosenModel
    from pipeline.settings import Settings

STUDY = "study"  # What click's contexts hold as their object where `study run` runs the command
PATH = click.Path(path_type=Path)
log = partial(click.echo, err=True)
_WORDS = ("{providers}", "{count}", "{keys}", "{in_batches}", "{carried_texts}")
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class FilledCommand(click.Command):
    """A command in whose help words in braces, such as `{providers}`, stand for what is known of the providers."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [param for param in self.params if isinstance(param, click.Option)]
        described: list[click.Command | click.Option] = [self, *options]
        if any(word in (each.help or "") for each in described for word in _WORDS):
            for word, meaning in _provider_words().items():
                for each in described:
                    each.help = each.help and each.help.replace(word, meaning)
        super().format_help(ctx, formatter)


def _provider_words() -> dict[str, str]:
    from pipeline.providers import every_provider

    providers = list(every_provider())
    carried = {"snippet": "snippets", "cited_text": "quotes"}
    texts = [f"{each.title}'s {carried[origin]}" for origin in carried for each in providers if each.passages == origin]
    meanings = (
        _listed([each.name for each in providers], "or"),
        _NUMBERS[len(providers)],
        _listed([each.key_variables[0] for each in providers]),
        _listed([each.title for each in providers if each.apis[0].batches.api]),
        _listed(texts),
    )
    return dict(zip(_WORDS, meanings, strict=True))


def _listed(words: Sequence[str], last: str = "and") -> str:
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


class SectionedCommand(FilledCommand):
    """A command whose help shows the options that are rarely needed in a section below the common ones.

    `rare` names them with their dashes, a blank between two. `check` raises a usage error where the values of all
    options, by name, do not go together; it looks at nothing else.
    """

    def __init__(
        self,
        name: str | None,
        rare: str = "",
        check: Callable[[Mapping[str, Any]], None] = lambda given: None,
        **attributes: Any,
    ) -> None:
        super().__init__(name, **attributes)
        self.rare = frozenset(rare.split())
        self.check = check

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        with augment_usage_errors(ctx):
            self.check(ctx.params)
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Rarely needed": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record and isinstance(param, click.Option):
                sections["Options" if self.rare.isdisjoint(param.opts) else "Rarely needed"].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def tell_next(step: str, done: str = "") -> None:
    """Print on stderr what was done and what comes next; the latter not inside `study run`, which says its own."""
    ctx = click.get_current_context(silent=True)
    following = "" if ctx and ctx.obj == STUDY else f"Next: {step}"
    if done or following:
        log(" ".join(filter(None, (done, following))))


def json_bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn the InputError about a value on the command line into a usage error."""
    from pipeline.core.errors import InputError

    try:
        yield
    except InputError as error:
        raise click.UsageError(str(error)) from error


def check_amount(max_cost: float | None) -> None:
    """Refuse `--max-cost nan`, which click takes for a number."""
    if max_cost is not None and not math.isfinite(max_cost):
        raise click.BadParameter(f"{max_cost} is no amount.", param_hint="--max-cost")


def named_model(
    settings: "Settings", model: str, provider: str, base_url: str, max_cost: float | None
) -> "ChosenModel":
    """The model to ask, with its key from the environment; who is asked where is printed."""
    from pipeline.models.asking import refuse_unknown_price
    from pipeline.providers import choose_model

    check_amount(max_cost)
    if base_url and not model:
        raise click.UsageError("A server at `--base-url` needs the name of a model; give it with `--model`.")
    with usage_errors():
        chosen = choose_model(
            os.environ,
            model=model,
            provider=provider,
            base_url=base_url,
            base_urls=settings.base_urls,
            apis=settings.apis,
        )
    refuse_unknown_price(chosen, settings.known_prices, max_cost)
    log(f"Asking {chosen.model} at {chosen.endpoint.base_url}.")
    return chosen


def log_unread(by_provider: Mapping[str, Mapping[str, int]]) -> None:
    """What looks like a citation in a run's answers and is none, a line a provider; nothing where all was read."""
    for provider, counts in by_provider.items():
        if counts:
            found = ", ".join(f"{count} × {name}" for name, count in counts.items())
            line = printable(f"{provider}: not read as citations: {found}")
            log(fill(line, 80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))


def read_narratives(
    path: Path, id_column: str, text_column: str | None, encoding: str, sheet: str, begun: "RunManifest | None"
) -> "NarrativesCsv":
    """The narratives of a file; one that is no UTF-8 as the run that has `begun` read it, else as is confirmed."""
    from pipeline.asking.narratives import NarrativesCsv, sample_rows
    from pipeline.core.errors import EncodingError, InputError

    try:
        return NarrativesCsv(path, id_column, text_column, encoding, sheet)
    except EncodingError as error:
        name, codec = error.name, error.codec
        if begun and begun.narratives.encoding and begun.narratives.file == path.name:
            codec = begun.narratives.encoding
            log(f"{path.name} is read as {codec}, as when the run began; `--encoding` names another.")
            return NarrativesCsv(path, id_column, text_column, codec, sheet)
        if not codec or not sys.stdin.isatty():
            raise InputError(f"{error} Or say what it is in: `--encoding {codec or 'NAME'}`.") from error
    log(f"{str(path)!r} is not UTF-8. As {name}, its rows are:")
    for row in sample_rows(path, id_column, codec):
        log(f"  {printable(row[:200])}")
    if not click.confirm(f"Is that right? (`--encoding {codec}` does not ask)", err=True):
        raise InputError(f"{str(path)!r} was not read; name its encoding with `--encoding NAME`, such as `mac-roman`.")
    return NarrativesCsv(path, id_column, text_column, codec, sheet)


def confirm_narratives(narratives: "NarrativesCsv", begun: "RunManifest | None", is_paid: bool, yes: bool) -> None:
    """Show what was left out, and what may be meant otherwise and nobody agreed to pay for; then somebody has to."""
    from pipeline.core.errors import InputError

    kept = begun.narratives if begun else narratives.file
    is_older = begun and begun.options and kept.agreed is None and kept.sha256 == narratives.file.sha256
    narratives.agree(None if is_older else kept.agreed or ())
    doubts = narratives.doubts(frozenset(narratives.file.agreed or ()))
    for line in islice([*narratives.notes, *doubts], 30):
        log(printable(f"{narratives.path.name}, {line}"))
    if len(doubts) > 30:
        log(f"… and {len(doubts) - 30:,} more lines like these")
    if doubts and is_paid and not yes:
        if not sys.stdin.isatty():
            advice = "Mend them, or give `--yes` to ask them as they are."
            raise InputError(f"{str(narratives.path)!r} has doubtful rows (above), and nothing was sent. {advice}")
        click.confirm("Ask these rows as they are? (`--yes` does not ask)", abort=True, err=True)
    if is_paid:
        narratives.agree()
