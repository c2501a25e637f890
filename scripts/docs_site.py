#!/usr/bin/env python
"""
Build the documentation site. `scripts/docs` sets up its environment and calls this.

    scripts/docs_site.py [--output FOLDER]             builds FOLDER/site; default: build/
    scripts/docs_site.py serve [--port 8000]           builds it and serves it on loopback

The build is in steps: check the navigation, copy the pages (with CHANGELOG.md, CONTRIBUTING.md and
SECURITY.md, which are in the root) into FOLDER/docs, let Zensical build them, check every link of
the result, write `llms.txt` and `llms-full.txt`.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import yaml

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
ROOT_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Pages of the root that the site has, and their names there."""

FENCE = re.compile(r"^(```+)[^\n]*\n.*?^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`\n]*`")
SIMULATED = re.compile(r"^<!-- answers: |\[simulated answer", re.MULTILINE)
NOTE = """
---

*The models' answers on this page are examples: a simulator gives them when the tests run the page.*
"""
"""The end of each page that shows answers of models."""
LIST_ITEM = re.compile(r"(?:[-*+]|\d+\.) ")


class BuildError(Exception):
    """What is wrong with the documentation, one line each."""


class Page(NamedTuple):
    """An entry of the navigation."""

    sections: tuple[str, ...]
    title: str
    path: str


# The navigation.


def read_config() -> dict[str, Any]:
    """The configuration of the site."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return config


def pages_of(nav: list[Any], sections: tuple[str, ...] = ()) -> Iterator[Page]:
    """The entries of a navigation, in its order."""
    for entry in nav:
        for title, value in entry.items():
            if isinstance(value, str):
                yield Page(sections, title, value)
            else:
                yield from pages_of(value, (*sections, title))


def check_nav(pages: list[Page]) -> list[str]:
    """What the navigation lacks, has twice, or should not have."""
    listed = [page.path for page in pages]
    existing = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    existing |= set(ROOT_PAGES.values())
    return [
        *(
            f"{path} is not in the navigation of mkdocs.yml"
            for path in sorted(existing - {*listed})
        ),
        *(f"{path} of the navigation does not exist" for path in sorted({*listed} - existing)),
        *(f"{p} is in the navigation twice" for p in sorted({*listed}) if listed.count(p) > 1),
    ]


# The pages.


def copy_pages(folder: Path) -> list[str]:
    """Copy all files of the documentation into a folder; returns what readers would see wrong."""
    wrong = []
    for source in sorted(DOCS.rglob("*")):
        if source.is_dir():
            continue
        target = folder / source.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            wrong += copy_page(source, target, folder)
        else:
            shutil.copyfile(source, target)
    for name, new_name in ROOT_PAGES.items():
        wrong += copy_page(ROOT / name, folder / new_name, folder)
    return wrong


def copy_page(source: Path, target: Path, folder: Path) -> list[str]:
    """Copy a page with its links adapted to where it stands in the site."""
    text = source.read_text(encoding="utf-8")

    def adapt(prose: str) -> str:
        linked = LINK.sub(lambda link: _adapt_link(link, source, target, folder), prose)
        # The Markdown of the site knows that a bar in code ends no cell, and shows its escape.
        return CODE.sub(lambda code: code[0].replace("\\|", "|"), linked)

    adapted = _outside_fences(text, adapt)
    target.write_text(adapted + NOTE * bool(SIMULATED.search(text)), encoding="utf-8")
    name = source.relative_to(ROOT)
    return [f"{name}:{line}: {problem}" for line, problem in list_problems(text)]


def _outside_fences(text: str, change: Any) -> str:
    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join((*parts, change(text[end:])))


def _adapt_link(link: re.Match[str], source: Path, target: Path, folder: Path) -> str:
    """The link as the site has it; a link to a file that the site lacks becomes its text."""
    image, words, address = link.groups()
    path, hash_sign, anchor = address.partition("#")
    if not path or urlsplit(address).scheme:
        return link[0]
    linked = Path(os.path.normpath(source.parent / path))
    if linked.is_relative_to(DOCS):
        moved = folder / linked.relative_to(DOCS)
    elif linked.name in ROOT_PAGES:
        moved = folder / ROOT_PAGES[linked.name]
    elif linked == ROOT / "README.md":
        moved = folder / "index.md"
        hash_sign = anchor = ""
    else:
        return words if linked.exists() else link[0]
    return f"{image}[{words}]({os.path.relpath(moved, target.parent)}{hash_sign}{anchor})"


def list_problems(text: str) -> Iterator[tuple[int, str]]:
    """Lists that Markdown of other programs shows and that of the site does not."""
    lines = _outside_fences(text, lambda prose: prose).split("\n")
    fenced = False
    for number, (before, line) in enumerate(zip(["", *lines], lines, strict=False), 1):
        fenced ^= line.startswith("```")
        if fenced or not LIST_ITEM.match(line.lstrip()):
            continue
        indent = len(line) - len(line.lstrip())
        if indent % 4:
            yield number, "a list inside a list needs an indent of four spaces"
        elif not indent and before and before[0] != " " and not LIST_ITEM.match(before):
            yield number, "a list needs an empty line before it"


# The result.


class _Links(HTMLParser):
    """The ids of an HTML page, where it links to, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        address = found.get("href") or found.get("src")
        if address is not None:
            (self.links if tag == "a" else self.loaded).append(address)


def check_links(site: Path) -> list[str]:
    """Links and files that lead nowhere, and what a page would load from another host."""
    read = {path: _read_links(path) for path in sorted(site.rglob("*.html"))}
    wrong = []
    for path, page in read.items():
        name = path.relative_to(site)
        if path.name == "404.html":  # its links begin at the root of a server
            continue
        wrong += [f"{name} loads {url}" for url in page.loaded if urlsplit(url).netloc]
        for address in (*page.links, *page.loaded):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            linked = Path(os.path.normpath(path.parent / unquote(parts.path)))
            linked = (
                path if not parts.path else linked / "index.html" if linked.is_dir() else linked
            )
            if not linked.exists():
                wrong.append(f"{name} links to {address}, which does not exist")
            elif parts.fragment and unquote(parts.fragment) not in read[linked].ids | {"__top"}:
                wrong.append(f"{name} links to {address}, which has no such heading")
    return wrong


def _read_links(path: Path) -> _Links:
    links = _Links()
    links.feed(path.read_text(encoding="utf-8"))
    return links


# For language models.


def summary_of(text: str) -> str:
    """The first sentence of a page, without marks; empty if it has none."""
    for paragraph in re.split(r"\n\s*\n", FENCE.sub("", text)):
        line = " ".join(paragraph.split())
        if line and line[0] not in "#<|>!-":
            plain = LINK.sub(r"\2", line)
            return re.split(r"(?<=[.!?:]) (?=[A-Z*`\"(])", plain, maxsplit=1)[0].rstrip(":")
    return ""


def write_llms(pages: list[Page], config: dict[str, Any], docs: Path, site: Path) -> list[str]:
    """Write llms.txt, llms-full.txt and the Markdown of each page; returns what is missing."""
    head = f"# {config['site_name']}\n\n> {config['site_description']}\n"
    index, full, wrong = [head], [head], []
    section: tuple[str, ...] = ()
    for page in pages:
        text = (docs / page.path).read_text(encoding="utf-8")
        summary = summary_of(text)
        if not summary:
            wrong.append(f"{page.path} has no first sentence for llms.txt")
        if page.sections != section:
            section = page.sections
            index.append(f"\n## {': '.join(section)}\n")
        index.append(f"- [{page.title}]({page.path}): {summary}")
        full.append(f"\n<!-- {page.path} -->\n\n{text.strip()}\n")
        (site / page.path).write_text(text, encoding="utf-8")
    (site / "llms.txt").write_text("\n".join(index) + "\n", encoding="utf-8")
    (site / "llms-full.txt").write_text("\n".join(full), encoding="utf-8")
    return wrong


# The build.


def build(output: Path) -> Path:
    """Build the site in a folder, which is emptied; raises `BuildError` with all that is wrong."""
    config = read_config()
    pages = [*pages_of(config["nav"])]
    _stop_at(check_nav(pages))
    docs, site = output / "docs", output / "site"
    for folder in (docs, site, output / ".cache"):
        shutil.rmtree(folder, ignore_errors=True)
    docs.mkdir(parents=True)
    _stop_at(copy_pages(docs))
    (output / "mkdocs.yml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    _run_zensical(output)
    _stop_at([*check_links(site), *write_llms(pages, config, docs, site)])
    return site


def _run_zensical(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = re.sub(r"\x1b\[[\d;]*m", "", done.stderr).partition("Traceback")[0].strip()
    if done.returncode or said not in ("", "No issues found"):
        raise BuildError(said or f"zensical ended with status {done.returncode}")


def _stop_at(wrong: list[str]) -> None:
    if wrong:
        raise BuildError("\n".join(wrong))


def serve(site: Path, port: int) -> None:
    """Serve the built site on loopback until Ctrl-C."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/  (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def main() -> int:
    """Build the site, and serve it if asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "command",
        nargs="?",
        choices=("build", "serve"),
        default="build",
        help="build the site, or build and serve it; default: build",
    )
    parser.add_argument(
        "--output", type=Path, default=ROOT / "build", metavar="FOLDER", help="default: build/"
    )
    parser.add_argument("--port", type=int, default=8000, help="of `serve`; default: 8000")
    options = parser.parse_args()
    try:
        site = build(options.output.resolve())
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Built {site}")
    if options.command == "serve":
        serve(site, options.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
