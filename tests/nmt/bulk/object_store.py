"""A stand-in for an object store in Beam: paths `store://KEY`, no folders, a rename that copies and
replaces nothing.

A translated chunk is seen only when it has been asked for a few times, as if two attempts had
written it at a time.

The change that FAILS numbers fails, with the two attempts after it: one to write an object before
it is there, one to rename an object after the copy. Every call whose number is a multiple of EVERY
fails too.

Each object is a local file in the folder that STORE names. Its name is its key, quoted. Run as a
program, it is `python -m nmt.bulk` with this store.
"""

import collections
import itertools
import os
import urllib.parse
from pathlib import Path

from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

SCHEME = "store"
FOLDER = Path(os.environ["STORE"])
LATE = 4  # an attempt asks twice: before the model, and before the rename
ASKED = collections.Counter()
FAILS = int(os.environ.get("FAILS", "0"))
CHANGES = itertools.count(1)
EVERY = int(os.environ.get("EVERY", "0"))
CALLS = itertools.count(1)


def fail_if_due(*, change=False):
    if change and next(CHANGES) in range(FAILS, FAILS + 3) and FAILS:
        raise BeamIOError("the store is away")
    if EVERY and next(CALLS) % EVERY == 0:
        raise OSError("the store fails now and then")


def file_of(path):
    return FOLDER / urllib.parse.quote(path.removeprefix(f"{SCHEME}://"), safe="")


class Store(FileSystem):
    def __init__(self, pipeline_options):
        if pipeline_options is None:  # as the stores of clouds
            raise ValueError("the store needs the options of the pipeline")
        super().__init__(pipeline_options)

    @classmethod
    def scheme(cls):
        return SCHEME

    def join(self, basepath, *paths):
        return "/".join([basepath, *paths])

    def split(self, path):
        return path.rpartition("/")[::2]

    def mkdirs(self, path):
        pass

    def has_dirs(self):
        return False

    def _list(self, dir_or_prefix):
        fail_if_due()
        paths = [f"{SCHEME}://{urllib.parse.unquote(each.name)}" for each in FOLDER.iterdir()]
        yield from (self.metadata(path) for path in paths if path.startswith(dir_or_prefix))

    def create(self, path, mime_type="", compression_type=None):
        fail_if_due(change=True)
        return file_of(path).open("wb")

    def open(self, path, mime_type="", compression_type=None):
        fail_if_due()
        return file_of(path).open("rb")

    def copy(self, source_file_names, destination_file_names):
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            file_of(target).write_bytes(file_of(source).read_bytes())

    def rename(self, source_file_names, destination_file_names):
        if any(file_of(target).exists() for target in destination_file_names):
            raise BeamIOError("this store replaces no object")
        self.copy(source_file_names, destination_file_names)
        fail_if_due(change=True)
        self.delete(source_file_names)

    def exists(self, path):
        fail_if_due()
        ASKED[path] += 1
        is_seen = "/chunks/" not in path or path.endswith(".part") or ASKED[path] > LATE
        return file_of(path).exists() and is_seen

    def size(self, path):
        return file_of(path).stat().st_size

    def last_updated(self, path):
        return file_of(path).stat().st_mtime

    def checksum(self, path):
        return str(self.size(path))

    def metadata(self, path):
        return FileMetadata(path, self.size(path), self.last_updated(path))

    def delete(self, paths):
        fail_if_due()
        for path in paths:
            found = [each.path for each in self._list(path)] if path.endswith("/") else [path]
            for each in found:
                file_of(each).unlink()


if __name__ == "__main__":
    from nmt.bulk.__main__ import main

    main()
