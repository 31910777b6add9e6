"""CTranslate2 as its README shows it: one translator with its own threads, all texts given at once. It cannot train."""

from __future__ import annotations

from contender import Job, Translate, run, text_to_text


def load(job: Job, beam: int) -> Translate:
    import ctranslate2

    translator = ctranslate2.Translator(f"{job['bundle']}/ctranslate2", device="cpu")
    return text_to_text(
        job, lambda pieces: [found.hypotheses[0] for found in translator.translate_batch(pieces, beam_size=beam)]
    )


if __name__ == "__main__":
    run(load=load)
