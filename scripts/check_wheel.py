"""
Check a wheel: what it contains, how large it is, and whether it works where it is installed.

    python scripts/check_wheel.py WHEEL [--sdist FILE] [--install [--uv PATH]]
    python scripts/check_wheel.py --use PYTHON
    python scripts/check_wheel.py --pythons

`scripts/build` builds both files and calls this. With `--sdist` the contents of the source
distribution are checked, too. With `--install` the wheel is installed into fresh environments
(bare, with each extra, with all of them), which needs a package index and `uv`. In each, the
library answers, and each extra's feature works or names the extra that is missing. Then library,
command line and gateway are used with every Python from 3.11 on that this machine has. With
`--use` the library that a Python has is used, and nothing else is done. `--pythons` lists the
Pythons of this machine.

Each problem is a line that starts with FAIL; the exit status is 1 if there is one.
"""

import argparse
import configparser
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email import message_from_bytes
from pathlib import Path

WHEEL_LIMIT = 2_000_000
"""Bytes of the wheel."""

INSTALLED_LIMIT = 40_000_000
"""Bytes of a bare installation with all that it depends on."""

PACKAGES_LIMIT = 14
"""Distributions of a bare installation, ours included."""

MODULES_LIMIT = 3
"""Modules of ours that `import interlingua` loads."""

DATA = {
    "interlingua/py.typed",
    "interlingua/providers/catalog/profiles.json",
}
"""The files of the package that are no Python."""

SOURCES = {
    ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE", "PKG-INFO", "README.md",
    "SECURITY.md", "mkdocs.yml", "pyproject.toml",
}  # fmt: skip
"""The files of the source distribution beside its folders; hatchling adds the first one."""

FOLDERS = {"benchmarks", "docs", "examples", "requirements", "scripts", "src", "tests"}
"""The folders of the source distribution: the package, and the tests with all that they read."""

SDIST_LIMIT = 6_000_000
"""Bytes of the source distribution."""

COMMANDS = {"interlingua", "il"}

FIRST_CALL = """
from interlingua import Client, HttpAdapter, sync
from interlingua.simulator import Simulator, serve_in_thread, text

with serve_in_thread(Simulator(text("It works."))) as server:
    client = Client({"openai": HttpAdapter("openai", "any-key", base_url=server.url)})
    assert sync.generate("openai:gpt-5.2", "Hi.", client=client).text == "It works."
"""

IMPORT = """
import json, os, sys

class NoVariables(dict):
    def __getitem__(self, name):
        raise SystemExit(f"import interlingua read the variable {name}")

    def get(self, name, default=None):
        return self[name]

    __contains__ = __getitem__

def refuse(event, arguments):
    if event.startswith(("socket.", "subprocess.", "os.system", "os.putenv", "os.exec")):
        raise SystemExit(f"import interlingua caused {event} {arguments}")
    if event == "open" and not str(arguments[0]).endswith((".py", ".pyc")):
        raise SystemExit(f"import interlingua opened {arguments[0]}")

before = {*sys.modules}
sys.addaudithook(refuse)
os.environ = NoVariables()
import interlingua
names = {*sys.modules} - before
ours = [name for name in names if name.split(".")[0] == "interlingua"]
foreign = {name.split(".")[0] for name in names} - {*sys.stdlib_module_names, "interlingua"}
print(json.dumps([len(ours), sorted(foreign)]))
"""

EXTRAS = {
    "cli": """
import subprocess, sys
listing = subprocess.run(
    [sys.executable, "-m", "interlingua", "models", "--json", "--provider", "anthropic"],
    capture_output=True, text=True,
)
assert listing.returncode == 0, listing.stderr
""",
    "gateway": """
import asyncio, tempfile
from pathlib import Path
from interlingua import Client, HttpAdapter, sync
from interlingua.gateway.config import gateway_from_file
from interlingua.gateway.keys import hash_key
from interlingua.gateway.server import listen, make_application, run, url_of
from interlingua.simulator import Simulator, serve_in_thread, text

answers = []

def ask(url):
    client = Client({"openai": HttpAdapter("openai", "il_a", base_url=f"{url}/v1")})
    return sync.generate("openai:bird", "Hi.", client=client).text

async def on_ready(running):
    answers.append(await asyncio.to_thread(ask, url_of(listener)))
    running.should_exit = True

async def on_end():
    pass

with (
    serve_in_thread(Simulator(text("Through the gateway."))) as server,
    tempfile.TemporaryDirectory() as folder,
    listen("127.0.0.1", 0) as listener,
):
    path = Path(folder, "interlingua.yaml")
    path.write_text(f'''
adapters:
  anthropic: {{api_key: any-key, base_url: "{server.url}"}}
gateway:
  keys: {{alice: {{hash: "{hash_key("il_a")}"}}}}
  routes: {{bird: anthropic:claude-haiku-4-5}}
''')
    gateway = gateway_from_file(path)
    app = make_application(gateway, secret=b"at least sixteen bytes")
    run(app, listener, gateway.timeouts, on_ready=on_ready, on_end=on_end)
assert answers == ["Through the gateway."], answers
""",
    "httpx": """
from interlingua import Client, HttpAdapter, sync
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.transport import HttpxTransport

with serve_in_thread(Simulator(text("Over httpx2."))) as server:
    adapter = HttpAdapter("openai", "any-key", base_url=server.url, transport=HttpxTransport())
    client = Client({"openai": adapter})
    assert sync.generate("openai:gpt-5.2", "Hi.", client=client).text == "Over httpx2."
""",
    "local": """
from interlingua.errors import ConfigurationError
from interlingua.local import local_server

try:
    with local_server("/no/such/model.gguf"):
        pass
except ConfigurationError as error:
    assert "model.gguf" in str(error), error
""",
    "mcp": """
import asyncio, sys
from interlingua.errors import SDKError
from interlingua.mcp import MCPStdioServer, mcp_tools

async def main():
    try:
        async with mcp_tools(MCPStdioServer(command=sys.executable, args=["-c", "pass"])):
            pass
    except SDKError as error:
        assert "interlingua[mcp]" not in str(error), error

asyncio.run(main())
""",
    "postgres": """
import asyncio
from interlingua.bulk.ledger.open import open_ledger
from interlingua.errors import StoreError

async def main():
    try:
        await open_ledger("postgresql://127.0.0.1:1/none").open()
    except StoreError:
        pass

asyncio.run(main())
""",
    "redis": """
import asyncio
from interlingua.errors import StoreError
from interlingua.stores import RedisStore

async def main():
    try:
        await RedisStore("redis://127.0.0.1:1").get("key")
    except StoreError:
        pass

asyncio.run(main())
""",
    "telemetry": """
from interlingua import Client, HttpAdapter, sync
from interlingua.middleware import Telemetry
from interlingua.simulator import Simulator, serve_in_thread, text

with serve_in_thread(Simulator(text("Observed."))) as server:
    adapter = HttpAdapter("openai", "any-key", base_url=server.url)
    client = Client({"openai": adapter}, middleware=[Telemetry()])
    assert sync.generate("openai:gpt-5.2", "Hi.", client=client).text == "Observed."
""",
    "vertex": """
import os
from interlingua import Client, HttpAdapter, sync
from interlingua.errors import ConfigurationError

os.environ["GOOGLE_APPLICATION_CREDENTIALS"] = "/no/such/file"
adapter = HttpAdapter("vertex", places={"project": "none", "location": "global"})
try:
    sync.generate("vertex:gemini-3-pro", "Hi.", client=Client({"vertex": adapter}))
except ConfigurationError as error:
    assert "found no credentials" in str(error), error
""",
}
"""Of each extra, a program that works with it and fails without it."""

DOORS = ("cli", "gateway")
"""The extras that are tried with each Python, beside the library: the rest is not ours."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("wheel", type=Path, nargs="?", help="the wheel, such as dist/*.whl")
    parser.add_argument("--use", metavar="PYTHON", help="make a first call with this Python")
    parser.add_argument("--pythons", action="store_true", help="list the Pythons from 3.11 on")
    parser.add_argument("--sdist", type=Path, help="the source distribution, to check it as well")
    parser.add_argument("--install", action="store_true", help="install and use the wheel, too")
    parser.add_argument("--uv", default=shutil.which("uv"), help="the program uv, if not on PATH")
    options = parser.parse_args()
    if options.use:
        done = use(Path(options.use), FIRST_CALL)
        sys.exit(f"FAIL the first call fails: {last_line(done.stderr)}" if done.returncode else 0)
    if options.pythons:
        for version, path in find_pythons().items():
            print(version, path)
        return
    if options.wheel is None:
        parser.error("Name the wheel to check, or a Python with --use.")
    problems = check_contents(options.wheel)
    if options.sdist:
        problems += check_sdist(options.sdist)
    if options.install:
        if not options.uv:
            parser.error("--install needs uv to make environments. Name it with --uv PATH.")
        problems += check_installed(options.wheel.resolve(), options.uv)
    for problem in problems:
        print("FAIL", problem)
    sys.exit(bool(problems))


# What is in it.


def check_contents(wheel: Path) -> list[str]:
    """What is wrong with the files of a wheel, one sentence each."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(name.split("/")[0] for name in names if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(f"{info}/METADATA"))
        commands = configparser.ConfigParser()
        commands.read_string(archive.read(f"{info}/entry_points.txt").decode())
        version = archive.read("interlingua/version.py").decode()
    problems = [
        f"{name} is outside the package"
        for name in names
        if name.split("/")[0] not in {"interlingua", info}
    ]
    problems += [
        f"{name} would run code or hide it"
        for name in names
        if name.endswith((".pth", ".so", ".pyc", ".pyd", ".dll", ".sh"))
    ]
    problems += _unneeded([name for name in names if not name.startswith(f"{info}/")])
    problems += [f"{name} is missing" for name in sorted(DATA - {*names})]
    problems += [
        f"{name} is missing"
        for name in (f"{info}/licenses/LICENSE", f"{info}/licenses/NOTICE")
        if name not in names
    ]
    if commands.sections() != ["console_scripts"] or {*commands["console_scripts"]} != COMMANDS:
        problems.append(f"it adds other entry points than the commands {sorted(COMMANDS)}")
    if f'__version__ = "{metadata["Version"]}"' not in version:
        problems.append("version.py and the metadata differ")
    if not {*EXTRAS, "all"} <= {*metadata.get_all("Provides-Extra")}:
        problems.append("an extra is missing")
    size = wheel.stat().st_size
    if size > WHEEL_LIMIT:
        problems.append(f"it has {size:,} bytes; the limit is {WHEEL_LIMIT:,}")
    print(f"{wheel.name}: {len(names)} files, {size:,} bytes (limit {WHEEL_LIMIT:,})")
    return problems


def check_sdist(sdist: Path) -> list[str]:
    """What a source distribution lacks, or has and should not have, one sentence each."""
    with tarfile.open(sdist) as archive:
        files = [member.name for member in archive.getmembers() if member.isfile()]
    names = [name.partition("/")[2] for name in files]
    package = [name.removeprefix("src/") for name in names if name.startswith("src/")]
    others = {name for name in names if "/" not in name}
    folders = {name.partition("/")[0] for name in names if "/" in name}
    size = sdist.stat().st_size
    print(f"{sdist.name}: {len(names)} files, {size:,} bytes (limit {SDIST_LIMIT:,})")
    missing = sorted((SOURCES - others - {".gitignore"}) | (FOLDERS - folders))
    unneeded = sorted((others - SOURCES) | (folders - FOLDERS))
    return [
        *_unneeded(package),
        *(f"{name} is not needed in the source distribution" for name in unneeded),
        *(f"{name} is missing" for name in missing),
        *([f"the source distribution has {size:,} bytes"] if size > SDIST_LIMIT else []),
    ]


def _unneeded(names: list[str]) -> list[str]:
    """The files of the package that are neither Python nor known data."""
    others = [name for name in names if name[-3:] != ".py" and name not in DATA]
    return [f"{name} is not needed" for name in others if not _is_catalog(name)]


def _is_catalog(name: str) -> bool:
    """Whether it is a file of the catalog, which has one for each provider."""
    return re.fullmatch(r"interlingua/providers/catalog/data/[a-z0-9_]+\.json", name) is not None


# Where it is installed.


def check_installed(wheel: Path, uv: str) -> list[str]:
    """What is wrong when the wheel is installed in fresh environments."""
    problems: list[str] = []
    for extras in [(), *((extra,) for extra in EXTRAS), ("all",)]:
        with tempfile.TemporaryDirectory() as folder:
            python = install(wheel, extras, Path(folder) / "env", uv)
            if not extras:
                problems += check_footprint(python)
            expected = {*EXTRAS} if extras == ("all",) else {*extras}
            found = check_features(python, expected)
            problems += [f"{sentence} (installed: {extras or 'bare'})" for sentence in found]
            print("installed", ", ".join(extras) or "bare", "FAIL" if found else "ok", flush=True)
    for version, program in find_pythons().items():
        with tempfile.TemporaryDirectory() as folder:
            python = install(wheel, DOORS, Path(folder) / "env", uv, str(program))
            found = check_features(python, {*DOORS})
            problems += [f"{sentence} (on {version})" for sentence in found]
            print("installed on", version, "FAIL" if found else "ok", flush=True)
    return problems


def find_pythons() -> dict[str, Path]:
    """The Pythons of this machine that the project promises, one of each version."""
    names = [f"python3.{minor}" for minor in range(11, 15)]
    folders = sorted(Path.home().glob(".pyenv/versions/*/bin"), reverse=True)
    places = [Path(sys.executable).parent, *map(Path, os.get_exec_path()), *folders]
    code = "import sys; print(f'python3.{sys.version_info[1]}', sys.implementation.name)"
    found: dict[str, Path] = {}
    for name in names:
        for path in (place / name for place in places):
            # The name may be that of a script which finds no such Python.
            if path.is_file() and run([str(path), "-c", code], check=False).stdout.split() == [
                name,
                "cpython",
            ]:
                found[name.removeprefix("python")] = path
                break
    return found


def install(
    wheel: Path, extras: tuple[str, ...], environment: Path, uv: str, base: str = sys.executable
) -> Path:
    """Make an environment with the wheel; returns its Python."""
    python = environment / "bin" / "python"
    target = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    run([uv, "venv", "--quiet", "--python", base, str(environment)])
    run([uv, "pip", "install", "--quiet", "--python", str(python), target])
    run([uv, "pip", "check", "--quiet", "--python", str(python)])
    return python


def check_footprint(python: Path) -> list[str]:
    """What is over its budget in a bare installation."""
    packages = python.parents[1] / "lib"
    size = sum(file.stat().st_size for file in packages.rglob("*") if file.is_file())
    folder = next(packages.glob("python*/site-packages"))
    count = len([*importlib.metadata.distributions(path=[str(folder)])])
    modules, foreign = json.loads(run([str(python), "-P", "-c", IMPORT]).stdout)
    hooks = [file.name for file in folder.glob("*.pth") if not file.name.startswith("_virtualenv")]
    figures = [
        ("bytes installed", size, INSTALLED_LIMIT),
        ("distributions", count, PACKAGES_LIMIT),
        ("modules of ours loaded by the import", modules, MODULES_LIMIT),
    ]
    for what, value, limit in figures:
        print(f"bare: {value:,} {what} (limit {limit:,})")
    problems = [f"{value:,} {what}" for what, value, limit in figures if value > limit]
    problems += [f"import interlingua loads {name}" for name in foreign]
    return problems + [f"{name} runs at every start of Python" for name in hooks]


def check_features(python: Path, expected: set[str]) -> list[str]:
    """What does not work although it is installed, or fails without naming its extra."""
    problems = []
    first = use(python, FIRST_CALL)
    if first.returncode:
        problems.append(f"the first call fails: {last_line(first.stderr)}")
    for extra, program in EXTRAS.items():
        done = use(python, program)
        if extra in expected and done.returncode:
            problems.append(f"{extra} does not work: {last_line(done.stderr)}")
        if extra not in expected and not done.returncode and not is_there(python, extra, expected):
            problems.append(f"{extra} works although it is not installed")
        if extra not in expected and done.returncode and f"interlingua[{extra}]" not in done.stderr:
            problems.append(f"{extra} does not say what to install: {last_line(done.stderr)}")
    return problems


def is_there(python: Path, extra: str, expected: set[str]) -> bool:
    """Whether another extra brought what this one needs."""
    module = {
        "cli": "click",
        "gateway": "uvicorn",
        "httpx": "httpx2",
        "local": "xllamacpp",
        "telemetry": "opentelemetry",
        "vertex": "google.auth",
    }
    found = use(python, f"import {module.get(extra, extra)}")
    return bool(expected) and not found.returncode


def use(python: Path, program: str) -> "subprocess.CompletedProcess[str]":
    return run([str(python), "-P", "-c", program], check=False)


def run(command: list[str], *, check: bool = True) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if check and done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]


if __name__ == "__main__":
    main()
