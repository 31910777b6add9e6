"""jumok demo vision: drawn shapes of many colours, sizes and places."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jumok.cli.demo_training import DemoTraining
from jumok.demo.shapes import SHAPES, demo_shapes
from jumok.engines.loading import load
from jumok.pictures import Pixels, png_bytes

TRAIN, TEST = 8000, 800
# Large patches: more pictures in a minute. A shape that is hidden in part, or mixed with another, is a different one.
SETTINGS: dict[str, Any] = {"model.patch": 8, "augment.erase": 0.0, "augment.mixup": 0.0}
SHOWN = 8


def run_demo(demo: DemoTraining) -> None:
    """Train on drawn shapes, and classify others."""
    pictures = list(demo_shapes(TRAIN + TEST))
    _write(demo, "train", pictures[:TRAIN])
    test = _write(demo, "test", pictures[TRAIN:])
    print(f"1. The built-in shapes → {demo.directory}")
    print(f"   {TRAIN:,} pictures to train on, {TEST:,} to test on: {', '.join(SHAPES)}\n")
    demo.train("image_classifier", demo.directory / "train", settings=SETTINGS)
    classifier = load(demo.run, task="image_classifier", device=demo.device)
    found = classifier.classify(list(test))
    right = sum(each.label == path.parent.name for each, path in zip(found, test, strict=True))
    print(f"\n3. The test\n   correct: {right / len(test):.1%} of {len(test):,} pictures")
    for path, each in list(zip(test, found, strict=True))[:SHOWN]:
        print(f"   {each.label} {each.probability:.0%}  {path}")
    print(f"""
4. Try it
   jumok classify -m {demo.quoted_run} {test[0]}
   jumok train classifier YOUR_PICTURES -o run      a directory for each class""")


def _write(demo: DemoTraining, part: str, pictures: Iterable[tuple[str, Pixels]]) -> list[Path]:
    """Write the pictures into a directory for each class; returns their paths."""
    return [
        demo.write(f"{part}/{name}/{number:05}.png", png_bytes(pixels))
        for number, (name, pixels) in enumerate(pictures)
    ]
