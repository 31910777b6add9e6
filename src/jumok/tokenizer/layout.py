"""Which ids mean what in every vocabulary, and the one change ever made to a text."""

from __future__ import annotations

import unicodedata

from jumok.errors import InputError

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")
FIRST_BYTE = len(SPECIAL_PIECES)  # ids 4 … 259 are the 256 bytes, for characters that have no piece of their own
FIRST_PIECE = FIRST_BYTE + 256

SPACE_MARK = "▁"  # U+2581: SentencePiece writes spaces so, and would read a real one back as a space


def normalize(text: str) -> str:
    """Unicode NFC: the only change ever made to a text. Refuses halves of surrogate pairs: no UTF-8 file has them."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"Character {error.start + 1} of a text is U+{ord(text[error.start]):04X}, half of a surrogate pair and no "
            "character. Decode the text as UTF-8 before giving it to Jumok."
        ) from None
    return unicodedata.normalize("NFC", text)
