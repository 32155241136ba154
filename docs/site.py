"""Writes the pages of the site to build/pages, from which `make docs` builds build/site.

Pages keep their paths in the repository, so the same links work in the repository and on the site.
"""

import base64
import json
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
LINK = re.compile(r"(?:\]\(|<img src=\")([^)\s\"]+)")
FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
DOCTEST = re.compile(r"^```python\n(>>> .*?)^```$", re.DOTALL | re.MULTILINE)
NAME = re.compile(
    r"(?<![`\w])`([^`\s]{1,36}|-[^`\n]{1,30})`(?!`)"
)  # longer ones may have to break on a phone
PICTURE = re.compile(r"^(?:!\[[^\]]*\]\(([^)\s]+)\)|<img src=\"([^\"]+)\".*>)$", re.MULTILINE)
RENDERED = "-notebook.md"  # X-notebook.md is the page that X.ipynb becomes
# The search leaves these out: long reports and pages for maintainers would hide the guides.
UNSEARCHED = (
    "docs/maintainers/",
    "experiments/PLAN",
    "experiments/results/",
    "tests/",
    "CHANGELOG",
    "CONTRIBUTING",
    "SECURITY",
)


def pages() -> list[Path]:
    """Returns the pages in the navigation of mkdocs.yml, in order."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"^ +- .*: (\S+\.md)$", text, re.MULTILINE)
    return [ROOT / path.replace(RENDERED, ".ipynb") for path in named]


def links(page: Path) -> list[Path]:
    """Returns the files that a page links to, pictures included, without links to other hosts."""
    targets = LINK.findall(FENCE.sub("", text_of(page)))
    return [
        (page.parent / target.partition("#")[0]).resolve()
        for target in targets
        if not re.match(r"\w+:|#", target)
    ]


def files_of_the_site() -> list[Path]:
    """Returns the pages, the files that they link to, and so on through linked pages."""
    found = dict.fromkeys(pages())
    waiting = list(found)
    while waiting:
        for path in links(waiting.pop()):
            if path.is_file() and path not in found:
                found[path] = None
                if path.suffix == ".md":
                    waiting.append(path)
    return list(found)


def text_of(page: Path) -> str:
    """Returns a page in Markdown; a notebook with its outputs, without HTML and pictures."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    return "\n\n".join(part for part in _cells(text) if isinstance(part, str)) + "\n"


def _cells(notebook: str) -> list[str | bytes]:
    """Returns the cells of a notebook and their outputs as Markdown, and their pictures as PNG."""
    parts: list[str | bytes] = []
    for cell in json.loads(notebook)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(base64.b64decode(data["image/png"]))
            elif (shown := "".join(output.get("text") or data.get("text/plain", ""))).strip():
                parts.append(f"```text\n{shown.rstrip()}\n```")
    return parts


def _rendered(text: str, place: str) -> str:
    """Returns a page of the repository as the site shows it.

    Doctests become code that can be copied, and their outputs blocks of their own. Pictures open in
    full size. Names of options and files do not break at a hyphen.
    """
    text = DOCTEST.sub(lambda block: plain_blocks(block[1]), text)
    text = PICTURE.sub(lambda picture: f"[{picture[0]}]({picture[1] or picture[2]})", text)
    text = re.sub(r"\]\(([^)\s]+)\.ipynb\)", rf"](\1{RENDERED})", text)
    parts = FENCE.split(text)
    fences = FENCE.findall(text)
    named = [NAME.sub(r"`\1`{ .name }", part) for part in parts]
    text = "".join(part + fence for part, fence in zip(named, [*fences, ""], strict=True))
    return f"---\nsearch:\n  exclude: true\n---\n\n{text}" if place.startswith(UNSEARCHED) else text


def plain_blocks(doctest: str) -> str:
    """Returns the code of a doctest, without prompts, and what it prints, in blocks."""
    lines = []
    kind = ""
    for line in doctest.rstrip().splitlines():
        this = kind
        if line.strip():
            this = "python" if re.match(r">>>|\.\.\.( |$)", line) else "text"
        if this != kind:
            lines += ["```", ""] * bool(kind) + [f"```{this}"]
            kind = this
        lines.append(line[4:] if this == "python" else line.replace("<BLANKLINE>", ""))
    return "\n".join([*lines, "```"])


def write_pages() -> None:
    """Replaces build/pages by the pages and the files that they link to."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for path in [*files_of_the_site(), ROOT / "docs" / "site.css"]:
        place = path.relative_to(ROOT).as_posix()
        to = PAGES / place
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".ipynb":
            parts = _cells(path.read_text(encoding="utf-8"))
            for number, part in enumerate(parts):
                if isinstance(part, bytes):
                    picture = to.with_name(f"{to.stem}-{number}.png")
                    picture.write_bytes(part)
                    parts[number] = f"![What the code above draws]({picture.name})"
            text = "\n\n".join(map(str, parts)) + "\n"
            to.with_name(to.stem + RENDERED).write_text(_rendered(text, place), encoding="utf-8")
        elif path.suffix == ".md":
            to.write_text(_rendered(path.read_text(encoding="utf-8"), place), encoding="utf-8")
        else:
            shutil.copyfile(path, to)


if __name__ == "__main__":
    write_pages()
