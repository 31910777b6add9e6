"""A painter that has learned the emoji by their names in English and Korean, and a sheet of what it paints.

    python benchmarks/painted_emoji.py --minutes 20 --out DIRECTORY

The pictures are those of the font Noto Color Emoji (Debian's package fonts-noto-color-emoji installs it), scaled to
32 × 32 pixels; the names come from the PyPI package `emoji`. Every picture is learned with both of its names, so the
sheet shows what the painter remembers; the last six captions are new to it. In --out are the pictures and
the run: the same command continues. The sheet is written to docs/images/emoji.png.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import emoji
from PIL import Image, ImageDraw, ImageFont

from jumok.cli.picture_sheet import contact_sheet, enlarged
from jumok.engines.loading import load

FONT = Path("/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf")
FONT_SIZE, LARGE = 109, 136  # pixels: the only size of the font, and the square that a picture of it fits in
SIDE, ZOOM, COLUMNS = 32, 2, 12
VALIDATED = 11  # every eleventh
SHEET = Path(__file__).parent.parent / "docs" / "images" / "emoji.png"
SETTINGS = ("model.codes=1024", "model.dropout=0", "tokenizer.size=3000", "optimizer.lr=0.003")
SHOWN = (  # that were learned, and at the end some that were not
    *(
        "red apple",
        "바나나",
        "watermelon",
        "딸기",
        "pizza",
        "햄버거",
        "birthday cake",
        "문어",
        "dolphin",
        "고양이 얼굴",
    ),
    *("dog face", "펭귄", "tiger face", "나비", "sunflower", "벚꽃", "rainbow", "태양", "full moon", "눈사람"),
    *("rocket", "자동차", "bicycle", "기차", "sailboat", "비행기", "house", "피아노", "guitar", "축구공"),
    *("grinning face", "우는 얼굴", "smiling face with heart-eyes", "유령", "robot", "왕관"),
    *("green apple", "파란색 하트", "green heart", "노란색 하트", "purple heart", "빨간색 하트"),
    *("red car", "초록색 자동차", "cat with sunglasses", "blue apple", "우는 강아지", "green flower"),
)


def names(character: str) -> list[str]:
    """What an emoji is called in English and Korean."""
    entry = emoji.EMOJI_DATA[character]
    return [str(entry[language]).strip(":").replace("_", " ") for language in ("en", "ko") if language in entry]


def single_characters() -> list[str]:
    """Every emoji of one character, without flags and signs: people of all skins and trades would be most of them."""
    emoji.config.load_language("ko")
    found = []
    for character, entry in emoji.EMOJI_DATA.items():
        bare = character.removesuffix("\ufe0f")
        if entry["status"] == emoji.STATUS["fully_qualified"] and len(bare) == 1 and len(names(character)) == 2:
            found.append(character)
    return sorted(found)


def render(character: str, font: ImageFont.FreeTypeFont) -> Image.Image:
    """The emoji in the middle of a white picture."""
    large = Image.new("RGB", (LARGE, LARGE), "white")
    ImageDraw.Draw(large).text((LARGE // 2, LARGE // 2), character, font=font, embedded_color=True, anchor="mm")
    return large.resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def write_pictures(out: Path) -> list[str]:
    """train/ and valid/, with captions.tsv and pictures/ each; what is there is not written again. Those for validation
    are some of the same: the painter shall know all of them by heart."""
    parts = [out / "train", out / "valid"]
    if not (out / "train" / "captions.tsv").exists():
        font = ImageFont.truetype(FONT, FONT_SIZE)
        rendered = {character: render(character, font) for character in single_characters()}
        known = [each for each in rendered if rendered[each].getextrema() != ((255, 255),) * 3]  # to the font
        for part, chosen in zip(reversed(parts), (known[::VALIDATED], known), strict=True):
            (part / "pictures").mkdir(parents=True, exist_ok=True)
            for character in chosen:
                rendered[character].save(part / "pictures" / f"{ord(character[0]):x}.png")
            lines = [f"{ord(each[0]):x}.png\t{name}\n" for each in chosen for name in names(each)]
            (part / "captions.tsv").write_text("".join(lines), encoding="utf-8")
    train, valid = ([str(part / "captions.tsv"), str(part / "pictures")] for part in parts)
    return [*train, "--valid", *valid]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    run = arguments.out / f"run-{arguments.minutes:g}"
    settings = [f"--set={setting}" for setting in (*SETTINGS, *arguments.set)]
    command = ["train", "painter", *write_pictures(arguments.out), "-o", str(run), f"--minutes={arguments.minutes:g}"]
    subprocess.run([sys.executable, "-m", "jumok", *command, *settings], check=True)
    painter = load(run, task="painter")
    painted = painter.paint(list(SHOWN), temperature=0.2, guidance=1.0)
    contact_sheet([enlarged(pictures[0], ZOOM) for pictures in painted], columns=COLUMNS).save(SHEET)
    print(f"{len(SHOWN)} pictures → {SHEET}")


if __name__ == "__main__":
    main()
