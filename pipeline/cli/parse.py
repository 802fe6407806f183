"""The commands `citejury pipeline parse` and `reparse`."""

from pathlib import Path

import click

from pipeline.cli.options import FilledCommand


@click.command(cls=FilledCommand)
@click.option("--provider", required=True, metavar="NAME", help="{providers}.")
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

    from pipeline.errors import ProviderError
    from pipeline.providers import provider_name, read_payload

    name = provider_name(provider)
    try:
        answer = read_payload(name, _read_payload_file(payload))
    except ProviderError as error:
        raise ProviderError(f"{_file_label(payload)}: {error}", error.kind) from error
    found = {
        "text": answer.text,
        "citations": list(answer.citations),
        "search_results": [result.model_dump() for result in answer.search_results],
    }
    click.echo(json.dumps(found, ensure_ascii=False).encode() + b"\n", nl=False)
    click.echo("Next: citejury pipeline ask NARRATIVES.csv --out RUN --replay DIR", err=True)


def _file_label(payload: Path) -> str:
    """How messages name the payload."""
    return "stdin" if str(payload) == "-" else repr(str(payload))


def _read_payload_file(payload: Path) -> str:
    """The payload's text.

    Raises:
        InputError: there is no such file.
        ProviderError: it is not UTF-8.
    """
    from pipeline.errors import InputError, ProviderError

    try:
        with click.open_file(str(payload), "rb") as file:
            return bytes(file.read()).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"There is no file {str(payload)!r}.") from error
    except IsADirectoryError as error:
        raise InputError(f"{str(payload)!r} is a folder; name one payload in it.") from error
    except UnicodeDecodeError as error:
        raise ProviderError(f"the payload is not UTF-8 (byte {error.start}).") from error


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
def reparse(run: Path) -> None:
    """Read the stored answers of the folder RUN again by today's rules, without asking anybody.

    Texts, citations and search results are derived anew from `answer_raw_json`; each answer that changed is a line on
    stdout. A file in which nothing changed is not touched.

    \b
    Example:
        citejury pipeline reparse answers
    """
    from pipeline.asking.reparse import reparse_run
    from pipeline.settings import read_settings

    done = reparse_run(run, read_settings().prices, click.echo)
    unreadable = f", {done.unreadable} cannot be read and stay as they are" if done.unreadable else ""
    click.echo(f"{click.format_filename(run)}: {done.answers} answers, {done.changed} changed{unreadable}", err=True)
    if done.citations_changed:
        click.echo("citations.jsonl changed", err=True)
    click.echo(f"Next: citejury pipeline sources {click.format_filename(run)} --out records.jsonl", err=True)
