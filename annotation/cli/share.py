"""The command `share`: a sheet for each annotator."""

from pathlib import Path

import click


@click.command()
@click.option(
    "--out", "folder", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder to write into."
)
@click.option(
    "--passwords",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="File that `citejury annotation setup --passwords` wrote; the sheets then hold the passwords.",
)
@click.option("--workspace", help="Argilla workspace; the setting `workspace` (citejury) if not given.")
@click.option("--api-url", help="Address of Argilla as annotators reach it; ARGILLA_API_URL if not given.")
def share(folder: Path, passwords: Path | None, workspace: str | None, api_url: str | None) -> None:
    """Write a sheet for each annotator, to be sent or printed.

    A sheet names the address, the user name and the datasets in order of the work, in her language; the guideline
    pages lie beside it. Passwords are on it only with `--passwords`, and then only you can read the files. Who has
    which datasets stands in the table `[campaign]` of citejury.toml; without it, all annotators of the workspace get
    a sheet. The API key comes from ARGILLA_API_KEY.

    \b
    Example:
        citejury annotation share --out sheets --passwords passwords.json
    """
    from annotation.campaign.file import read_campaign
    from annotation.campaign.people import read_passwords
    from annotation.campaign.share import share_sheets
    from annotation.client import open_argilla
    from pipeline.settings import read_settings

    campaign = read_campaign()
    settings = read_settings(workspace=workspace, api_url=api_url)
    known = read_passwords(passwords) if passwords else None
    with open_argilla(settings) as argilla:
        written = share_sheets(argilla, settings.workspace, campaign, folder, known)
    for path in (*written.sheets, *written.guidelines):
        click.echo(path)
    if known is not None and written.without_password:
        click.echo(f"No password is known of: {', '.join(written.without_password)}", err=True)
    click.echo("Next: send each annotator her sheet with the guideline pages of her language.", err=True)
