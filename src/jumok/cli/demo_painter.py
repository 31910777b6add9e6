"""jumok demo painter: pictures of shapes from captions in English and Korean."""

from pathlib import Path
from typing import Any

from jumok.cli.demo_training import DemoTraining
from jumok.cli.picture_sheet import contact_sheet, enlarged
from jumok.demo.scene_reader import shows
from jumok.demo.scenes import DrawnScene, demo_scenes
from jumok.engines.loading import load
from jumok.engines.painter.text import TextPainter
from jumok.pictures import png_bytes

PICTURES, TEST_PICTURES = 15_000, 500
SHOWN = 24  # pictures on the sheet
TEMPERATURE, GUIDANCE = 0.5, 1.5
# Pictures of few shapes need few layers, and captions of few words none but two.
SETTINGS: dict[str, Any] = {
    "preset": "tiny",
    "model.encoder_layers": 2,
    "model.decoder_layers": 3,
    "model.dropout": 0.0,
    "model.codes": 256,
    "tokenizer.size": 500,
    "optimizer.lr": 0.003,
    "validate.sentences": 200,
}


def run_demo(demo: DemoTraining) -> None:
    """Train on drawn scenes, and paint combinations of words that do not occur in training."""
    captions, pictures = _write_scenes(demo)
    print(f"1. The built-in scenes → {pictures}")
    print(f"   {PICTURES:,} pictures with captions in English and Korean: shapes, colours, sizes, places, numbers\n")
    demo.train("painter", captions, pictures, settings=SETTINGS)
    painter = load(demo.run, task="painter", device=demo.device)
    print("\n3. The test: captions with new combinations, judged by a program that finds the shapes")
    _test(painter, demo.directory / "painted.png")
    print(f"""
4. Try it
   jumok paint -m {demo.quoted_run} "a small red circle above a blue square" -o picture.png --n 4
   jumok paint -m {demo.quoted_run} "큰 초록색 세모 왼쪽에 있는 작은 보라색 네모" -o picture.png
   jumok train painter YOUR.tsv PICTURES -o run      the name of a picture, a tab and a caption in each line""")


def _write_scenes(demo: DemoTraining) -> tuple[Path, Path]:
    """The captions and the directory of the pictures; those that are there already are not written again."""
    directory = demo.directory / "pictures"
    directory.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, scene in enumerate(demo_scenes(PICTURES)):
        name = f"{number:05}.png"
        if not (directory / name).exists():
            (directory / name).write_bytes(png_bytes(scene.pixels))
        lines.append(f"{name}\t{scene.caption}\n")
    return demo.write("captions.tsv", "".join(lines)), directory


def _test(painter: TextPainter, sheet: Path) -> None:
    scenes = list(demo_scenes(TEST_PICTURES, seed=1, held_out=True))
    painted = painter.paint([scene.caption for scene in scenes], temperature=TEMPERATURE, guidance=GUIDANCE)
    right = [shows(_pixels(pictures[0]), scene.scene) for pictures, scene in zip(painted, scenes, strict=True)]
    print(f"   drawn right: {sum(right) / len(right):.1%} of {len(right):,} captions")
    kinds = [_kind(scene) for scene in scenes]
    languages = ["English" if scene.caption == scene.scene.caption("en") else "Korean" for scene in scenes]
    for groups, names in ((kinds, ("at a place", "in a relation", "several")), (languages, ("English", "Korean"))):
        for name in names:
            some = [ok for ok, group in zip(right, groups, strict=True) if group == name]
            print(f"   {sum(some) / max(1, len(some)):7.1%} {name}")
    contact_sheet([enlarged(pictures[0], 3) for pictures in painted[:SHOWN]], columns=8).save(sheet)
    print(f"   the first {SHOWN} → {sheet}")
    for ok, scene in list(zip(right, scenes, strict=True))[:8]:
        print(f"   {'✓' if ok else '✗'} {scene.caption}")


def _pixels(picture: Any) -> Any:
    import numpy as np

    return np.asarray(picture)


def _kind(drawn: DrawnScene) -> str:
    return "at a place" if drawn.scene.place else "several" if drawn.scene.count > 1 else "in a relation"
