import json
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.support.big_stack import DOCKER, ROOT, read_compose

COMPOSE = DOCKER / "compose.yaml"
DCLINT = ROOT / ".venv" / "dclint" / "node_modules"
PINNED = re.compile(r"[\w/]+:\d+(\.\d+)+(-[a-z]+)?")


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return read_compose(tmp_path_factory.mktemp("compose") / "docker").services


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    return yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))


@pytest.mark.rare
def test_an_old_env_file_that_names_opensearch_changes_nothing(services: dict[str, Any], tmp_path: Path) -> None:
    read_compose(tmp_path)
    with open(tmp_path / ".env", "a", encoding="utf-8") as settings:
        settings.write("COMPOSE_PROFILES=opensearch\n")
    assert set(read_compose(tmp_path).services) == set(services)


def test_the_file_keeps_to_the_schema_of_compose_files(written: dict[str, Any]) -> None:
    schema = DCLINT / "dclint" / "schemas" / "compose.schema.json"
    if not schema.exists():
        pytest.skip("`make stack` could not install dclint here, which brings the schema.")
    jsonschema.Draft7Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(written)
    assert "name" not in written  # docker-compose 1.29 takes none


def test_dclint_finds_nothing() -> None:
    linter, node = DCLINT / "dclint" / "bin" / "dclint.cjs", shutil.which("node", path=ROOT / ".venv" / "bin")
    if not linter.exists() or node is None:
        pytest.skip("`make stack` could not install dclint here.")
    command = [node, linter, COMPOSE, "--max-warnings", "0", "--disable-rule", "require-project-name-field"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "")


def test_each_service_is_reached_by_no_more_than_it_needs_has_no_more_rights_and_comes_back(
    services: dict[str, Any], written: dict[str, Any]
) -> None:
    published = {name: each["ports"] for name, each in services.items() if "ports" in each}
    assert published == {"web": ["127.0.0.1:6900:6900/tcp"]}
    assert written["networks"]["inside"] == {"internal": True}
    assert {name for name, each in services.items() if "outside" in each["networks"]} == {"web", "worker"}
    for name, each in services.items():
        assert each["user"].split(":")[0] not in {"0", "root"}, name
        assert (each["cap_drop"], each["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
        assert set(each["deploy"]["resources"]["limits"]) == {"cpus", "memory"}
        assert each["pids_limit"] > 0
        assert each["read_only"] is True
        assert PINNED.fullmatch(each["image"]), each["image"]
    staying = {name: each for name, each in services.items() if name != "migrate"}
    assert all(each["healthcheck"]["test"] and each["restart"] == "unless-stopped" for each in staying.values())
    volumes = {(name, *volume.split(":")[:2]) for name, each in staying.items() for volume in each.get("volumes", ())}
    assert {(name, *rest) if len(rest) == 1 else (name, "kept", rest[1]) for name, *rest in volumes} == {
        ("postgres", "kept", "/var/lib/postgresql/data"),
        ("postgres", "/run/postgresql"),  # only for its run
        ("redis", "kept", "/data"),
    }


def test_the_image_is_pinned_and_runs_as_nobody() -> None:
    lines = (DOCKER / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert {line.split()[1] for line in lines if line.startswith("FROM")} == {"python:3.11.14-slim-bookworm"}
    assert "USER 10001:10001" in lines
    copied = {word for line in lines if line.startswith("COPY") and "--from" not in line for word in line.split()[1:-1]}
    assert all((ROOT / name).exists() for name in copied)
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8")
    shown = {line[1:] for line in ignored.splitlines() if line.startswith("!")}
    assert shown == {name for name in copied if not shown & {str(above) for above in Path(name).parents}}


def test_without_secrets_nothing_starts_and_the_script_is_named(tmp_path: Path) -> None:
    if shutil.which("docker-compose") is None:
        pytest.skip("docker-compose is not installed here.")
    shutil.copy(COMPOSE, tmp_path)
    command = ["docker-compose", "--file", str(tmp_path / "compose.yaml"), "config"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "run docker/make-secrets first" in done.stderr


def copied_docker(folder: Path) -> Path:
    """docker/ without secrets in a folder of its own: the script that makes them."""
    shutil.copytree(DOCKER, folder, ignore=shutil.ignore_patterns(".env", "client.env"))
    return folder / "make-secrets"


def test_the_secrets_are_new_kept_and_closed_to_others_and_the_client_finds_the_port(tmp_path: Path) -> None:
    made = []
    for name in ("first", "second"):
        folder = tmp_path / name
        script = copied_docker(folder)
        for _ in range(2):
            subprocess.run([script], check=True, capture_output=True)
            made.append((folder / ".env").read_text(encoding="utf-8"))
        assert sorted(path.name for path in folder.iterdir() if ".env" in path.name) == [".env", "client.env"]
        assert {stat.S_IMODE((folder / file).stat().st_mode) for file in (".env", "client.env")} == {0o600}
    assert made[0] == made[1] != made[2] == made[3]
    secrets = [re.findall(r"^\w+(?:PASSWORD|KEY)=([0-9a-f]{64})$", text, re.MULTILINE) for text in made[::2]]
    assert [len(set(each)) for each in secrets] == [5, 5]
    assert not set(secrets[0]) & set(secrets[1])
    script, env = copied_docker(tmp_path / "docker"), tmp_path / "docker" / ".env"
    subprocess.run([script], check=True, capture_output=True)
    env.write_text(env.read_text(encoding="utf-8").replace("=6900", "=7000"), encoding="utf-8")
    subprocess.run([script], check=True, capture_output=True)
    shown = subprocess.check_output(["sh", "-c", f". '{tmp_path}/docker/client.env'; echo $ARGILLA_API_URL"], text=True)
    assert shown == "http://127.0.0.1:7000\n"


def test_a_folder_that_is_no_home_gives_no_secrets(tmp_path: Path) -> None:
    command = [copied_docker(tmp_path / "docker"), "--from", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = f"{tmp_path}/secrets.json has no owner_username of an embedded server.\n"
    assert (done.returncode, done.stderr) == (1, said)
    assert not (tmp_path / "docker" / ".env").exists()
