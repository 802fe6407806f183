"""The command `citejury doctor`."""

import json

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def doctor(as_json: bool) -> None:
    """Look at what is here and what is missing: Python, libraries, settings, keys, Argilla.

    Nothing is changed, and no key is shown. Where something needed is missing the exit code is 1; a `note` is about
    something that not everybody needs.

    \b
    Example:
        citejury doctor
    """
    from annotation.cli_parts import print_table
    from exports.doctor import Check, examine

    checks = examine()
    if as_json:
        click.echo(json.dumps([check._asdict() for check in checks], ensure_ascii=False, indent=2))
    else:
        print_table([("what", *Check._fields[1:3], "to do"), *checks])
    missing = sum(check.state == "missing" for check in checks)
    click.echo(f"Missing: {missing}." if missing else "Nothing that is needed is missing.", err=True)
    if missing:
        raise click.exceptions.Exit(1)
