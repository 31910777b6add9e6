"""Lossless conversion between text and subword ids: SentencePiece (unigram, byte fallback), trained in process.
`decode(encode(x)) == normalize(x)` for every text, control characters included: text is brought to Unicode NFC
(composed Korean syllables and accents) in training and encoding alike, and changed in no other way."""

from jumok.tokenizer.casing import is_title_case, is_upper_case, lower_case, sentence_case, title_case, upper_case
from jumok.tokenizer.layout import BOS, EOS, FIRST_BYTE, FIRST_PIECE, PAD, SPACE_MARK, UNK, normalize
from jumok.tokenizer.subwords import Tokenizer
from jumok.tokenizer.vocabulary import TextStatistics, choose_size

__all__ = ["BOS", "EOS", "FIRST_BYTE", "FIRST_PIECE", "PAD", "SPACE_MARK", "UNK", "normalize"]
__all__ += ["is_title_case", "is_upper_case", "lower_case", "sentence_case", "title_case", "upper_case"]
__all__ += ["TextStatistics", "Tokenizer", "choose_size"]
