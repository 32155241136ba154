"""Multi30k: 29,000 image descriptions with their translations.

Reference: Elliott et al. (2016), aclanthology.org/W16-3210.
"""

import gzip
from pathlib import Path

import keras

from ...errors import UserError
from ...storage.files import atomic_write

_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
# Our file -> archive and its SHA-256
_ARCHIVES = {
    "train.en": ("train.en.gz", "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
    "train.de": ("train.de.gz", "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
    "dev.en": ("val.en.gz", "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
    "dev.de": ("val.de.gz", "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
    "test.en": ("test_2016_flickr.en.gz", "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"),
    "test.de": ("test_2016_flickr.de.gz", "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"),
}


def write_multi30k(to: Path) -> None:
    """Writes Multi30k with its 2016 test set. Downloads the archives to `to/download`, unless they are there already.

    Raises:
        UserError: A download fails, or its checksum differs.
    """
    archives = {name: _download(*archive, to) for name, archive in _ARCHIVES.items()}
    to.mkdir(parents=True, exist_ok=True)
    for name, archive in archives.items():
        with gzip.open(archive, "rt", encoding="utf-8", newline="\n") as lines, atomic_write(to / name) as file:
            file.writelines(lines)


def _download(name: str, sha256: str, to: Path) -> str:
    try:
        return keras.utils.get_file(
            name, _URL + name, file_hash=sha256, hash_algorithm="sha256", cache_dir=to, cache_subdir="download"
        )
    except Exception as error:  # Keras documents no narrower type
        names = ", ".join(archive for archive, _ in _ARCHIVES.values())
        raise UserError(
            f"{_URL}{name} cannot be downloaded ({error}); put {names} from that folder into {to / 'download'} "
            "and run the same command again"
        ) from None
