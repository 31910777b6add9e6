"""The ids that every vocabulary has in common, and the normalisation of texts."""

import unicodedata

from jumok.errors import InputError

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")
FIRST_BYTE = len(SPECIAL_PIECES)  # ids 4 … 259 are the 256 bytes, for characters that have no token of their own
FIRST_PIECE = FIRST_BYTE + 256

SPACE_MARK = "▁"  # U+2581: SentencePiece's symbol for a space; a real one in a text needs care


def normalize(text: str) -> str:
    """Return the text in Unicode NFC; nothing else is changed. Raise InputError for half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"Character {error.start + 1} of a text is U+{ord(text[error.start]):04X}, half of a surrogate pair and no "
            "character. Decode the text as UTF-8 before giving it to Jumok."
        ) from None
    return unicodedata.normalize("NFC", text)
