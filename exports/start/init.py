"""The start of a project of one's own: settings and a study with comments, two narratives, stored answers to them."""

from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from exports.study.file import STUDY_FILE
from pipeline.errors import OutputError
from pipeline.files import staged_file
from pipeline.providers import get_provider
from pipeline.schema import PROVIDERS
from pipeline.settings import SETTINGS_FILE

_NARRATIVES = 2
_ARMS = ("neutral", "leading", "malicious")

_SETTINGS = """\
# Settings of this folder; every command reads them. Keys never stand here: they come from the environment
# (ARGILLA_API_KEY, {key}, ...). An option wins over the environment, and the environment over this file.

# Address of Argilla. `citejury annotation serve` runs one here.
api_url = "http://127.0.0.1:6900"
# Argilla workspace that holds the datasets.
workspace = "citejury"

# What the models are told and asked; {note_text} is the narrative. Without it, what citejury asks anyway.
# [prompts]
# system = "Answer from sources on the web, and cite them."
# user_template = "{note_text} Is this right?"
# [prompts.de]
# user_template = "{note_text} Stimmt das?"

# What the annotators do. `citejury annotation setup` shows what it would change in Argilla, then changes it.
[campaign]
# Languages of questions and guidelines: en, de, ja. A record of another language goes to the first.
locales = ["en"]
# How many annotators a record waits for. By task: overlap = { retrieval = 1, grounding = 2, generation = 2 }
overlap = 2
# Whether grounding asks which words of the context decided: "optional", or "required" where there are some.
# evidence = "optional"

# Before production all annotators answer the same records, so that differences in reading the rules show early.
[campaign.calibration]
# Share of the records, by a hash of their ids. Or a number for each language instead: records = 20
fraction = 0.1
seed = 0
# How many annotators a record of this round waits for; all of its language if not given.
# overlap = 3

# Before that they may practise on known cases, each explained at once; what they practise opens at the pass mark.
# [campaign.practice]
# pass_mark = 0.75
# tasks = ["retrieval", "grounding", "generation"]

# One block for each person. `locales` are the languages that she labels in; all of the campaign's if not given. Where
# annotators do not share all languages, each language gets a workspace of its own (`citejury-de`, ...).
# `left = true` takes her out of the workspaces; what she answered stays. `role = "adjudicator"` is for somebody who
# labels nothing and settles what annotators differ on (`citejury exports adjudicate push`).
[[campaign.annotators]]
name = "anna"

[[campaign.annotators]]
name = "ben"

# Groups of annotators, each with its own share of the records in a workspace of its own (`citejury-north`, ...).
# Records overlap within a group only.
# [campaign.groups]
# north = ["anna"]
# south = ["ben"]

# Records that must go to one group, by record_uuid; the others are spread by a hash.
# [campaign.assign]
# north = ["0b9f6d1e-2c3a-4e5f-8a7b-000000000001"]

# What `citejury exports results` counts of an answer as a whole: labels of which one is enough, `not ` before those
# that count where they are no. Without any table of this kind, this one is measured.
# [findings.serious_problem]
# title = "Serious problem"
# any = ["contradicted_claim_present", "fabricated_source", "unsafe_content", "not response_on_topic"]

# Words at an answer's opening that affirm or reject its narrative, a table for each language of answers;
# `citejury exports results --runs` counts them.
# [verdicts.en]
# affirms = ["yes"]
# rejects = ["no"]
"""

_STUDY = """\
# What `citejury study run` repeats every month: it asks, reads the cited pages, draws a sample, puts it before the
# annotators, and, when they are done, says what they found and what moved since the months before. Each table holds
# options of one command, named as on its command line (`citejury pipeline ask --help`); a list gives one several times.
narratives = "narratives.csv"
# Each month gets a folder in this one.
months = "months"

[ask]
# Stored answers, to try it without a key. Take this line out to ask for real.
replay = "payloads"
# providers = "{providers}"
# Three askers, each in a file of its own; with arms the payloads are in a folder for each.
# arm = ["neutral:arms/neutral.toml", "leading:arms/leading.toml"]
# repeats = 2
# About half the price, within a day, of providers whose batches search the web; not with stored answers.
# batch = true
# max-cost = 50

[sources]
# Nobody is asked for pages. Take this line out as well.
offline = true

# The same narratives are drawn every month, so that months can be compared.
[plan]
# hours = 40

[setup]
passwords = "passwords.json"
# How many annotators each answer waits for.
overlap = 2

# [results]
# by = "model_name,language"
"""

_GITIGNORE = """\
# Keys, passwords and Argilla's own data belong on this machine only.
env
.env
*.key
passwords.json
/citejury-home/
/sheets/
"""

_README = """\
# A citejury project

- `citejury.toml`: settings and the campaign
- `narratives.csv`: what the models are asked; replace the examples with your own
- `payloads/`: stored answers to the examples, to try everything without a key
- `arms/`: three askers for `citejury pipeline ask --arm`: neutral, leading, malicious, in English, German and Japanese
- `study.toml`: all of the below as one command that you repeat every month

Try it, in this folder. Each command says at its end which one comes next:

    citejury doctor
    citejury pipeline ask narratives.csv --replay payloads --out answers
    citejury pipeline sources answers --out records.jsonl      # reads the cited pages; `--offline` asks nobody
    citejury annotation serve                                  # in a second terminal, in this folder
    set -a; . ./citejury-home/env; set +a                      # as it says: the key, for this terminal
    citejury annotation setup --passwords passwords.json
    citejury annotation push records.jsonl
    citejury annotation share --out sheets --passwords passwords.json
    citejury annotation status                                 # how far they are
    citejury exports csv labels                                # once there are responses

Your own narratives are a CSV file with the columns `narrative_id` and `prompt`, as your spreadsheet writes it (`,`, `;`
or tabs); name others with `--id-column` and `--text-column`. To ask for real, put the providers' keys into the
environment and leave `--replay` out; `--dry-run` shows what it would cost. To compare ways of asking, name them:
`--arm neutral:arms/neutral.toml --arm leading:arms/leading.toml`, and in the end `citejury exports results --by arm`.

`citejury study run` does the same every month, as `study.toml` says, and tells what moved since the months before;
`--dry-run` shows its commands. Give it again when the annotators are done: it goes on from there.

Annotators on other machines need HTTPS: `citejury annotation serve --behind-tls`, in a third terminal the proxy that it
names, and `--api-url https://annotate.example.org` for `share`, with your own name.
"""


class Started(NamedTuple):
    """What the folder holds now."""

    written: tuple[Path, ...]
    """Files that are new."""
    kept: tuple[Path, ...]
    """Files that were there with the same content, as after an interruption."""


def start_project(folder: Path) -> Started:
    """Write the files of a new project into the folder, which is made where it is missing.

    Run again, it finishes what was interrupted.

    Raises:
        OutputError: the folder holds a file of one of the names with another content, or cannot be written; nothing was
            written in the first case.
    """
    wanted = {folder / name: content for name, content in project_files().items()}
    try:
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
    except OSError as error:
        raise OutputError(f"`{folder}` cannot be used: {error.strerror or error}. Name another folder.") from error
    return Started(new, tuple(there))


def project_files() -> dict[str, bytes]:
    """The content of each file of a new project, by its path in the folder."""
    demo = files("exports") / "demo_data"
    lines = (demo / "narratives.csv").read_text(encoding="utf-8").splitlines()[: _NARRATIVES + 1]
    ids = [line.partition(",")[0] for line in lines[1:]]
    payloads = {
        f"payloads/{provider}/{narrative_id}.json": (demo / "payloads" / provider / f"{narrative_id}.json").read_bytes()
        for provider in PROVIDERS
        for narrative_id in ids
        if (demo / "payloads" / provider).is_dir()
    }
    arms = {f"arms/{name}.toml": (demo / "arms" / f"{name}.toml").read_bytes() for name in _ARMS}
    texts = {".gitignore": _GITIGNORE, "README.md": _README, "narratives.csv": "\n".join(lines) + "\n"}
    settings = _SETTINGS.replace("{key}", get_provider(PROVIDERS[0]).key_variables[0])
    texts |= {SETTINGS_FILE: settings, STUDY_FILE: _STUDY.replace("{providers}", ",".join(PROVIDERS[1:3]))}
    return {**payloads, **arms, **{name: text.encode() for name, text in texts.items()}}
