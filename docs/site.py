"""MkDocs hook: pages keep their paths in the repository, so the same links work in the repository and on the site."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?:\]\(|<img src=\")([^)\s\"]+)")
FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"<code>([^<\s]{1,36})</code>")  # longer ones may have to break on a phone
RENDERED = "-notebook.md"  # X-notebook.md is the page that X.ipynb becomes
# Search shows guides before the long reports. A title counts a thousand times as much as a text.
LATE = 0.0005
BOOST = {"docs/": 2, "README.md": 2, "docs/maintainers/": LATE, "experiments/": LATE, "tests/": LATE, "CHANGELOG": LATE}


def pages() -> list[Path]:
    """Returns the pages in the navigation of mkdocs.yml, in order."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"^ +- .*: (\S+\.md)$", text, re.MULTILINE)
    return [ROOT / path.replace(RENDERED, ".ipynb") for path in named]


def links(page: Path) -> list[Path]:
    """Returns the files that a page links to, pictures included; links to other hosts are left out."""
    targets = LINK.findall(FENCE.sub("", text_of(page)))
    return [(page.parent / target.partition("#")[0]).resolve() for target in targets if not re.match(r"\w+:|#", target)]


def files_of_the_site() -> list[Path]:
    """Returns the pages, the files that they link to, and so on: a page that is linked is a page of the site too."""
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
    """Returns a page in Markdown; a notebook with its outputs, without its HTML."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            shown = "".join(output.get("text") or output.get("data", {}).get("text/plain", ""))
            if shown.strip():
                parts.append(f"```text\n{shown.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def on_files(files, config):
    """Replaces the files that MkDocs found in docs/ by the pages and the files that they link to."""
    from mkdocs.structure.files import File, Files

    def file(path: Path) -> File:
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".ipynb":
            return File.generated(config, name.replace(".ipynb", RENDERED), content=text_of(path))
        return File(name, str(ROOT), config.site_dir, config.use_directory_urls)

    theme = [each for each in files if each.src_dir != config.docs_dir]
    return Files([*map(file, [*files_of_the_site(), ROOT / "docs" / "site.css"]), *theme])


def on_page_markdown(markdown, page, **kwargs):
    """Sets the place of a page in the results of a search."""
    name = max((prefix for prefix in BOOST if page.file.src_uri.startswith(prefix)), key=len, default=None)
    page.meta["search"] = {"boost": BOOST.get(name, 1)}
    return re.sub(r"\]\(([^)\s]+)\.ipynb\)", rf"](\1{RENDERED})", markdown)


def on_page_content(html, **kwargs):
    """Marks names of options and files, so that they do not break at a hyphen."""
    return NAME.sub(r'<code class="name">\1</code>', html)
