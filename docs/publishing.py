"""What the site of the documentation needs beyond its pages, a hook of MkDocs (`mkdocs.yml`): `make docs`.

Links are those of the repository. On the site, a link to what is no page of it becomes plain text; pages from outside of
this folder are taken in, notebooks as they were run; decisions are listed from their folder, commands are described from
the code, and graphs are drawn.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.cli import get_docs_for_click

from docs.drawing import svg
from remegraph.cli.app import whole

__all__ = ["on_config", "on_files", "on_page_markdown"]

_DOCS = Path(__file__).parent
_ROOT = _DOCS.parent
_FENCED = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")

_TAKEN_IN = {
    "project/changelog.md": _ROOT / "CHANGELOG.md",
    "project/contributing.md": _ROOT / "CONTRIBUTING.md",
    "project/security.md": _ROOT / "SECURITY.md",
    "integrations/openai_tools.md": _ROOT / "integrations/openai_tools/README.md",
    "integrations/langchain_classic.md": _ROOT / "integrations/langchain_classic/README.md",
    **{f"notebooks/{notebook.stem}.md": notebook for notebook in (_ROOT / "notebooks").glob("*.ipynb")},
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the decisions, whose folder is the one list of them."""
    assert config.nav is not None
    (decisions,) = [part["Decisions"] for part in config.nav if isinstance(part, dict) and "Decisions" in part]
    decisions[1:] = [f"decisions/{page.name}" for page in sorted((_DOCS / "decisions").glob("[0-9]*.md"))]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Take in the pages that stand beside what they are about."""
    for name, path in _TAKEN_IN.items():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Describe the commands where they belong, and make links of the repository those of the site."""
    del config
    if page.file.src_uri == "reference/cli.md":
        command = _listed(whole())
        markdown += get_docs_for_click(obj=command, ctx=typer.Context(command), name="remegraph", indent=1)
    if page.file.src_uri.startswith("notebooks/"):
        markdown = "\n\n".join(_told(json.loads(markdown)))
    pages = {Path(file.abs_src_path).resolve(): file for file in files if file.abs_src_path}
    here = Path(page.file.abs_src_path or _DOCS).parent

    def led(link: re.Match[str]) -> str:
        text, target, anchor = link.groups(default="")
        file = pages.get((here / target).resolve())
        return f"[{text}]({_way(page.file.src_uri, file.src_uri)}{anchor})" if file else text

    parts = _FENCED.split(markdown)
    return "".join(_shown(part) if at % 2 else _LINK.sub(led, part) for at, part in enumerate(parts))


def _listed(command: Any) -> Any:
    """Return a command that lists what it has in whole sentences, without what is hidden."""
    for name, each in [*getattr(command, "commands", {}).items()]:
        each.short_help = (each.help or "").partition("\n")[0]
        if each.hidden:
            del command.commands[name]
        _listed(each)
    return command


def _shown(block: str) -> str:
    """Return a block of code as the site has it: Mermaid would need a script."""
    return svg(block) if block.startswith("```mermaid") else block


def _told(notebook: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of a page that shows a notebook: text, code, what it printed, what it drew."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"
        for output in cell.get("outputs", ()):
            if "text" in output:
                yield f"```text\n{''.join(output['text']).rstrip()}\n```"
            else:
                title, picture = "".join(output["data"]["text/plain"]), output["data"]["image/png"]
                yield f"![{title}](data:image/png;base64,{picture})"


def _way(start: str, end: str) -> str:
    """Return the relative path from one page to another."""
    return Path(os.path.relpath(end, Path(start).parent)).as_posix()
