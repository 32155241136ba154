"""Downloads Multi30k: 29,000 image descriptions with their translations.

Reference: Elliott et al. (2016), aclanthology.org/W16-3210.
"""

import gzip
from pathlib import Path

import keras

from ...errors import UserError
from ...storage.files import atomic_write

_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
# Our name of each part -> its name there
_PARTS = {
    "train": "train",
    "dev": "val",
    "test": "test_2016_flickr",
    "test_2017_flickr": "test_2017_flickr",
    "test_2017_mscoco": "test_2017_mscoco",
}
_SHA256 = {
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2017_flickr.en.gz": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    "test_2017_flickr.de.gz": "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    "test_2017_mscoco.en.gz": "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
    "test_2017_mscoco.de.gz": "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338",
}


def write_multi30k(to: Path) -> None:
    """Writes Multi30k, with `test` of 2016 and two tests of 2017.

    Downloads archives that `to/download` lacks.
    """
    to.mkdir(parents=True, exist_ok=True)  # else Keras downloads to a folder of its own
    archives = {name: _download(name, to) for name in _SHA256}
    for part, theirs in _PARTS.items():
        for language in ("en", "de"):
            archive = archives[f"{theirs}.{language}.gz"]
            with (
                gzip.open(archive, "rt", encoding="utf-8", newline="\n") as lines,
                atomic_write(to / f"{part}.{language}") as file,
            ):
                file.writelines(lines)


def _download(name: str, to: Path) -> str:
    try:
        return keras.utils.get_file(
            name,
            _URL + name,
            file_hash=_SHA256[name],
            hash_algorithm="sha256",
            cache_dir=to,
            cache_subdir="download",
        )
    except Exception as error:  # Keras documents no narrower type
        raise UserError(
            f"{_URL}{name} cannot be downloaded ({error}); put {', '.join(_SHA256)} from that "
            f"folder into {to / 'download'} and run the same command again"
        ) from None
