"""A project of one's own: its first files, and what is missing here for it, each with what to do about it."""

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from importlib.resources import files
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from annotation.argilla.client import open_argilla
from annotation.argilla.labels import add_task, task_named
from annotation.argilla.task_file import read_task
from annotation.argilla.wording import locales, read_wording
from annotation.campaign.file import campaign_from, read_campaign
from annotation.cli.serve import check_has_server, port_of
from exports.csv.fetch import check_server
from exports.study.file import STUDY_FILE
from pipeline.core.errors import CitejuryError, OutputError, ServerStartError
from pipeline.core.files import SETTINGS_FILE, output_errors, staged_file
from pipeline.core.schema import PROVIDERS
from pipeline.providers import every_provider, get_provider
from pipeline.settings import Settings, read_settings

_OWN_TASKS = '# tasks = ["retrieval", "grounding", "generation"]'


def start_project(folder: Path, tasks: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Write the files of a new project into the folder, those that are not there; which they were.

    `tasks` are task files, which are copied with their wording, and are the campaign's.
    """
    wanted = {folder / name: content for name, content in project_files(tasks).items()}
    with output_errors(f"`{folder}` cannot be used", "Name another folder."):
        there = {path: path.read_bytes() for path in wanted if path.exists()}
        other = [path.relative_to(folder) for path, content in there.items() if content != wanted[path]]
        if other:
            raise OutputError(
                f"`{folder}` holds {', '.join(f'`{path}`' for path in other)} already. Name another folder; nothing "
                "was written."
            )
        new = tuple(path for path in wanted if path not in there)
        for path in new:
            with staged_file(path) as file:
                file.write(wanted[path])
    return new


def project_files(tasks: Sequence[Path] = ()) -> dict[str, bytes]:
    spoken = _spoken(tasks) if tasks else []
    copied = {each.name: each.read_bytes() for path in tasks for each in [path, *path.parent.glob(f"{path.stem}.*.*")]}
    demo = files("exports") / "demo_data"
    lines = (demo / "narratives.csv").read_text(encoding="utf-8").splitlines()[:3]
    ids = [line.partition(",")[0] for line in lines[1:]]
    payloads = {
        f"payloads/{provider}/{narrative_id}.json": (demo / "payloads" / provider / f"{narrative_id}.json").read_bytes()
        for provider in PROVIDERS
        for narrative_id in ids
        if (demo / "payloads" / provider).is_dir()
    }
    arms = {
        f"arms/{name}.toml": (demo / "arms" / f"{name}.toml").read_bytes()
        for name in ("neutral", "leading", "malicious")
    }
    names = {".gitignore": "gitignore", "README.md": "README.md", SETTINGS_FILE: SETTINGS_FILE, STUDY_FILE: STUDY_FILE}
    texts = {name: (demo / "project" / own).read_text(encoding="utf-8") for name, own in names.items()}
    texts[SETTINGS_FILE] = texts[SETTINGS_FILE].replace("{key}", get_provider(PROVIDERS[0]).key_variables[0])
    if tasks:
        named = "tasks = " + json.dumps([path.name for path in tasks], ensure_ascii=False)
        settings = texts[SETTINGS_FILE].replace(_OWN_TASKS, named)
        texts[SETTINGS_FILE] = settings.replace('locales = ["en"]', f"locales = {json.dumps(spoken)}")
    texts[STUDY_FILE] = texts[STUDY_FILE].replace("{providers}", ",".join(PROVIDERS[1:3]))
    texts["narratives.csv"] = "\n".join(lines) + "\n"
    return {**payloads, **arms, **copied, **{name: text.encode() for name, text in texts.items()}}


def _spoken(paths: Sequence[Path]) -> list[str]:
    """The languages of a campaign of these task files, which set-up would take."""
    copied = {path.name: path for path in paths}
    names = [add_task(read_task(copied[path.name])) for path in paths]
    worded = [task_named(name).wording for name in names]
    spoken = [locale for locale in locales() if all(locale in each for each in worded)]
    given = {"locales": spoken or [*dict.fromkeys(chain(*worded))] or ["en"], "tasks": names}
    campaign_from(given, "A campaign of these task files")
    return spoken


_HOME = Path("citejury-home")
_HOME_ENV = _HOME / "env"

State = Literal["ok", "note", "missing"]


class Check(NamedTuple):
    name: str
    state: State  # `ok`; `note` where something is absent that not everybody needs; `missing` where something needed is
    found: str
    to_do: str = ""


def examine() -> list[Check]:
    folder = Check("folder", "ok", "can be written")
    if not os.access(Path.cwd(), os.W_OK | os.X_OK):
        folder = Check("folder", "missing", "cannot be written", "change to a folder of your own")
    version = ".".join(map(str, sys.version_info[:3]))
    checks = [Check("Python", "ok", version), _check_server(), _check_research(), _check_wording()]
    checks += [folder, _check_home()]
    try:
        settings = read_settings()
    except CitejuryError as error:
        return [*checks, Check("settings", "missing", str(error), f"mend `{SETTINGS_FILE}` or the environment")]
    found = Check("settings", "ok", SETTINGS_FILE if Path(SETTINGS_FILE).is_file() else "no file; defaults")
    return [*checks, found, _check_campaign(), _check_keys(os.environ), *_check_argilla(settings)]


def _check_research() -> Check:
    if find_spec("ddgs"):
        return Check("extra research", "ok", "installed")
    return Check("extra research", "note", "without ddgs", "if you want it: pip install '.[research]'")


def _check_server() -> Check:
    try:
        check_has_server()
        from annotation.server.environment import server_python

        server_python()
    except ServerStartError as error:
        return Check("server", "note", str(error))
    return Check("server", "ok", "installed")


def _check_wording() -> Check:
    try:
        for locale in locales():
            read_wording(locale)
    except CitejuryError as error:
        return Check("wording", "missing", str(error), "mend that file")
    return Check("wording", "ok", ", ".join(locales()))


def _check_home() -> Check:
    secrets = _HOME / "secrets.json"
    if not secrets.exists():
        return Check("server's home", "note", f"no {_HOME} here", "`citejury annotation serve` makes it")
    if not os.access(secrets, os.R_OK):
        return Check("server's home", "missing", f"{secrets} cannot be read", "give the file to your user")
    if secrets.stat().st_mode & 0o077:
        return Check("server's home", "missing", f"others can read {secrets}", f"chmod 600 {secrets}")
    return Check("server's home", "ok", f"{secrets} is yours only")


def _check_campaign() -> Check:
    try:
        campaign = read_campaign()
    except CitejuryError as error:
        return Check("campaign", "missing", str(error), f"mend `{SETTINGS_FILE}`")
    if campaign is None:
        return Check("campaign", "note", f"no [campaign] in {SETTINGS_FILE}", "`citejury init DIR` writes an example")
    people = sum(person.role == "annotator" and not person.left for person in campaign.annotators)
    return Check("campaign", "ok", f"{', '.join(campaign.locales)}; {people} annotators")


def _check_keys(environment: Mapping[str, str]) -> Check:
    """Keys are named, never shown."""
    given = ", ".join(name for provider in every_provider() for name in provider.key_variables if environment.get(name))
    absent = [each.name for each in every_provider() if not any(map(environment.get, each.key_variables))]
    if not absent:
        return Check("providers' keys", "ok", given)
    to_do = f"without them, leave out {', '.join(absent)}, or answer with --replay"
    return Check("providers' keys", "note", given or "none", to_do)


def _check_argilla(settings: Settings) -> list[Check]:
    port = port_of(settings.api_url)
    if settings.api_key is None:
        to_do = "set ARGILLA_API_KEY; `citejury annotation serve` says how"
        if _HOME_ENV.is_file():
            to_do = f"in this terminal: set -a; . ./{_HOME_ENV}; set +a"
        state: State = "missing" if _port_is_taken(port) else "note"
        return [Check("Argilla's key", state, "ARGILLA_API_KEY is not set", to_do), _check_startable(port)]
    try:
        with open_argilla(settings) as argilla:
            check_server(argilla)
            version = argilla.request("GET", "/version")["version"]
            role = argilla.me()["role"]
            clock = check_clock(argilla.server_date(), datetime.now(UTC))
            return [Check("Argilla", "ok", f"{version} at {argilla.api_url}"), _check_role(role), clock]
    except CitejuryError as error:
        return [Check("Argilla", "missing", str(error), "start or reach Argilla"), _check_startable(port)]


def _check_role(role: str) -> Check:
    if role == "owner":
        return Check("Argilla's key", "ok", "an owner's")
    if role == "admin":
        return Check("Argilla's key", "note", "an admin's", "set-up needs an owner's; push, status and exports do not")
    return Check("Argilla's key", "missing", f"of the role {role}", "use the key of an owner or admin")


def check_clock(date: str, now: datetime) -> Check:
    """Whether this machine's clock and the server's `Date` header agree: filters by time compare them."""
    try:
        apart = abs(now - parsedate_to_datetime(date))
    except (ValueError, TypeError):  # no date at all, or one without an offset
        return Check("clock", "note", "Argilla does not tell its time", "compare the two clocks yourself")
    if apart <= timedelta(seconds=60):
        return Check("clock", "ok", "agrees with Argilla's")
    return Check("clock", "missing", f"{round(apart.total_seconds())} s apart from Argilla's", "set the clock")


def _check_startable(port: int) -> Check:
    server = _check_server()
    if server.state != "ok":
        return Check("embedded Argilla", "missing", server.found, "or set ARGILLA_API_URL to an Argilla elsewhere")
    if _port_is_taken(port):
        to_do = f"if that is not Argilla: name another port in `api_url` of {SETTINGS_FILE}"
        return Check("embedded Argilla", "note", f"something listens at port {port}", to_do)
    return Check("embedded Argilla", "ok", f"can start; port {port} is free")


def _port_is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
