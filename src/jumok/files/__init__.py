"""Files that survive a crash, a full disk and damage: written durably, verified before they are used.

A durable directory has a MANIFEST.json with the size and SHA-256 of each file. It is written under a temporary name and
renamed when complete and on the disk. All that changes the disk goes through a `FileSystem`; tests pass one that fails.
"""

from jumok.errors import UnreadableError, WriteError
from jumok.files.json_text import MAX_JSON_BYTES, format_json, parse_json_object
from jumok.files.reading import (
    FORMAT,
    MANIFEST,
    FileRecord,
    open_verified,
    read_bounded,
    read_manifest,
    read_verified,
    regular_size,
    verify_directory,
)
from jumok.files.writing import (
    REAL_FILES,
    Contents,
    FileSystem,
    clean_leftovers,
    explained_writing,
    is_leftover,
    make_directory_durably,
    remove,
    replace_file_durably,
    replacing_durably,
    set_aside,
    temporary_directory,
    write_directory_durably,
)

__all__ = ["MAX_JSON_BYTES", "UnreadableError", "WriteError", "format_json", "parse_json_object"]
__all__ += ["FORMAT", "MANIFEST", "FileRecord", "open_verified", "read_bounded", "read_manifest", "read_verified"]
__all__ += ["regular_size", "verify_directory"]
__all__ += ["REAL_FILES", "Contents", "FileSystem", "clean_leftovers", "explained_writing", "is_leftover"]
__all__ += ["make_directory_durably", "remove", "replace_file_durably", "replacing_durably", "set_aside"]
__all__ += ["temporary_directory", "write_directory_durably"]
