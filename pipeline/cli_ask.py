"""The commands `citejury pipeline ask` and `citejury pipeline parse`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pipeline.calls import Call
    from pipeline.run_folder import RunManifest
    from pipeline.schema import ProviderName


@click.command()
@click.option("--provider", required=True, metavar="NAME", help="openai, claude, gemini, grok or perplexity.")
@click.argument("payload", type=click.Path(path_type=Path, allow_dash=True))
def parse(provider: str, payload: Path) -> None:
    """Read one stored payload: text, citations and search results as one JSON object on stdout.

    PAYLOAD is a provider's body as it was sent; `-` reads it from stdin. A refusal, a block, or a body that is queued
    or cut short is read with what is there; an error is one line and exit 1.

    \b
    Example:
        citejury pipeline parse --provider claude answers/N001.json
    """
    import json

    from pipeline.errors import PayloadError
    from pipeline.providers import provider_name, read_payload

    name = provider_name(provider)
    try:
        answer = read_payload(name, read_payload_file(payload))
    except PayloadError as error:
        raise PayloadError(f"{file_label(payload)}: {error}", error.kind) from error
    found = {
        "text": answer.text,
        "citations": list(answer.citations),
        "search_results": [result.model_dump() for result in answer.search_results],
    }
    click.echo(json.dumps(found, ensure_ascii=False).encode() + b"\n", nl=False)
    click.echo("Next: citejury pipeline ask NARRATIVES.csv --out RUN --replay DIR", err=True)


def file_label(payload: Path) -> str:
    """How messages name the payload."""
    return "stdin" if str(payload) == "-" else repr(str(payload))


def read_payload_file(payload: Path) -> str:
    """The payload's text.

    Raises:
        InputError: there is no such file.
        PayloadError: it is not UTF-8.
    """
    from pipeline.errors import InputError, PayloadError

    try:
        with click.open_file(str(payload), "rb") as file:
            return bytes(file.read()).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"There is no file {str(payload)!r}.") from error
    except IsADirectoryError as error:
        raise InputError(f"{str(payload)!r} is a folder; name one payload in it.") from error
    except UnicodeDecodeError as error:
        raise PayloadError(f"the payload is not UTF-8 (byte {error.start}).") from error


@click.command()
@click.argument("narratives", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="RUN", help="Run folder to write to.")
@click.option("--providers", metavar="A,B", help="Whom to ask; by default all that have payloads in the replay folder.")
@click.option("--model", "models", multiple=True, metavar="PROVIDER=NAME", help="Model to ask for; may be repeated.")
@click.option("--id-column", default="narrative_id", show_default=True, help="Column of the narratives' ids.")
@click.option("--text-column", help="Column of their texts.  [default: prompt, else narrative_prompt]")
@click.option("--max-rows", type=click.IntRange(min=1), metavar="N", help="Ask only the first N narratives.")
@click.option(
    "--replay", type=click.Path(path_type=Path), metavar="DIR", help="Folder of stored payloads to answer from."
)
def ask(
    narratives: Path,
    out: Path,
    providers: str | None,
    models: tuple[str, ...],
    id_column: str,
    text_column: str | None,
    max_rows: int | None,
    replay: Path | None,
) -> None:
    """Put the narratives of a CSV file to the providers, and keep their answers in the folder RUN.

    Answers come from stored payloads: DIR/<provider>/<narrative_id>.json, `<id>.2.json` for a second row of an id,
    and beside it, where wanted, `<id>.meta.json` with `status`. RUN holds one CSV v2 a provider, errors.jsonl,
    citations.jsonl and manifest.json. Stopped at any moment and started again, it goes on where it was.

    \b
    Example:
        citejury pipeline ask narratives.csv --out answers --replay payloads --providers claude,gemini
    """
    if replay is None:
        raise click.UsageError("This version answers from stored payloads only; name their folder with `--replay DIR`.")
    from pipeline.replay import replay_narratives

    with progress_bar() as report:
        manifest = replay_narratives(
            narratives,
            out,
            replay,
            providers=chosen_providers(providers) if providers is not None else None,
            models=chosen_models(models),
            id_column=id_column,
            text_column=text_column,
            max_rows=max_rows,
            report=report,
        )
    print_summary(manifest)
    click.echo(f"Next: citejury pipeline sources {click.format_filename(out)} --out RECORDS.jsonl", err=True)


def chosen_providers(names: str) -> "list[ProviderName]":
    """The providers of `--providers`, each once, in the fixed order.

    Raises:
        InputError: a name is no provider's.
    """
    from pipeline.providers import provider_name
    from pipeline.schema import PROVIDERS

    chosen = {provider_name(name) for name in names.split(",") if name.strip()}
    if not chosen:
        raise click.BadParameter("it names no provider.", param_hint="--providers")
    return [provider for provider in PROVIDERS if provider in chosen]


def chosen_models(options: tuple[str, ...]) -> "dict[ProviderName, str]":
    """The model to ask for by provider: the settings', and over them those of `--model`.

    Raises:
        InputError: a name is no provider's.
    """
    from pipeline.providers import provider_name
    from pipeline.settings import read_settings

    models = {provider_name(name): model for name, model in read_settings().models.items()}
    for option in options:
        name, _, model = option.partition("=")
        if not name.strip() or not model.strip():
            raise click.BadParameter(f"{option!r} is not PROVIDER=NAME.", param_hint="--model")
        models[provider_name(name)] = model.strip()
    return models


@contextmanager
def progress_bar() -> "Iterator[Callable[[Call, int], None]]":
    """What to call with each settled call and the number of all; shown on stderr, only over a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("asking", total=None)
        yield lambda call, total: progress.update(task, advance=1, total=total, description=call.provider)


def print_summary(manifest: "RunManifest") -> None:
    """Print what each provider answered, and what went wrong by kind."""
    for provider, counts in manifest.providers.items():
        cut = "".join(f", {count} ended with {reason!r}" for reason, count in counts.cut_short.items())
        click.echo(f"{provider}: {counts.answers} answers, {counts.citations} citations{cut}", err=True)
    if manifest.errors:
        kinds = ", ".join(f"{count} {kind}" for kind, count in manifest.errors.items())
        click.echo(f"not answered: {kinds} (see errors.jsonl)", err=True)
