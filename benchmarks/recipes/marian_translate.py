"""Translates test.en with weights of Marian by CTranslate2: `python marian_translate.py model.iter100.npz BEAM`."""

from __future__ import annotations

import sys
from pathlib import Path

import ctranslate2
import numpy as np
import sentencepiece
from ctranslate2.converters import MarianConverter


def convert(checkpoint: Path) -> None:
    """Marian's configuration ends with a zero byte, which the converter does not read; so copy without it."""
    weights = dict(np.load(checkpoint))
    config = weights["special:model.yml"].tobytes().rstrip(b"\0")
    weights["special:model.yml"] = np.frombuffer(config, np.int8)
    np.savez("converted.npz", **weights)
    MarianConverter("converted.npz", ["pieces.yml", "pieces.yml"]).convert("converted", force=True)


def main() -> None:
    pieces = sentencepiece.SentencePieceProcessor("pieces.spm")
    vocabulary = "".join(f"{pieces.id_to_piece(number)}: {number}\n" for number in range(pieces.get_piece_size()))
    Path("pieces.yml").write_text(vocabulary, encoding="utf-8")
    convert(Path(sys.argv[1]))
    lines = Path("test.en").read_text(encoding="utf-8").splitlines()
    translator = ctranslate2.Translator("converted", device="cpu", inter_threads=2, intra_threads=1)
    found = translator.translate_batch(
        pieces.encode(lines, out_type=str), beam_size=int(sys.argv[2]), max_decoding_length=80
    )
    output = "".join(f"{pieces.decode(each.hypotheses[0])}\n" for each in found)
    Path("output.de").write_text(output, encoding="utf-8")


if __name__ == "__main__":
    main()
