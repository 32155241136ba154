"""MkDocs hook: pages keep their paths in the repository, so the same links work in the repository and on the site."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?:\]\(|<img src=\")([^)\s\"]+)")
FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    """Returns the pages in the navigation of mkdocs.yml, in order."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return [ROOT / path for path in re.findall(r"^ +- .*: (\S+\.md)$", text, re.MULTILINE)]


def links(page: Path) -> list[Path]:
    """Returns the files that a page links to, pictures included; links to other hosts are left out."""
    targets = LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return [(page.parent / target.partition("#")[0]).resolve() for target in targets if not re.match(r"\w+:|#", target)]


def on_files(files, config):
    """Replaces the files that MkDocs found in docs/ by the pages and the files that they link to."""
    from mkdocs.structure.files import File, Files

    theme = [file for file in files if file.src_dir != config.docs_dir]
    wanted = dict.fromkeys(path for page in pages() for path in [page, *links(page)] if path.is_file())
    ours = [
        File(path.relative_to(ROOT).as_posix(), str(ROOT), config.site_dir, config.use_directory_urls)
        for path in wanted
    ]
    return Files([*ours, *theme])
