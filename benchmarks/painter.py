"""`jumok train painter` on the pictures of Fashion-MNIST with captions made from their labels.

    python benchmarks/painter.py --data /usr/share/datasets/fashion-mnist --minutes 20 --out DIRECTORY

The directory of the data holds the four IDX files; Debian's package dataset-fashion-mnist installs them there. The
painter learns from the 60,000 training pictures, half of them with English captions ("a sneaker"), half with Korean
ones ("운동화"). scikit-learn's support vector machine, which learns from the same pictures and knows nothing of the
painter, then says what it sees on painted pictures. With --out DIRECTORY the pictures, the run and the results are kept
there, and the same command continues.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from machine import MEASURED, describe_machine

from jumok.cli.picture_sheet import contact_sheet
from jumok.engines.loading import load
from jumok.pictures import png_bytes
from pictures import read_idx

PAGE, SHEET = Path(__file__).with_suffix(".md"), Path(__file__).with_suffix(".png")
CAPTIONS = (  # English and Korean, in the order of the labels
    ("a T-shirt", "티셔츠"),
    ("trousers", "바지"),
    ("a pullover", "스웨터"),
    ("a dress", "원피스"),
    ("a coat", "코트"),
    ("a sandal", "샌들"),
    ("a shirt", "셔츠"),
    ("a sneaker", "운동화"),
    ("a bag", "가방"),
    ("an ankle boot", "발목 부츠"),
)
LANGUAGES = ("English", "Korean")
PAINTED = 50  # pictures of each caption
SHOWN = 8  # of each kind on the sheet
SVM_PICTURES = 40_000  # that the support vector machine learns from

Pictures = npt.NDArray[np.uint8]  # [N, 28, 28]


def jumok(*arguments: str) -> str:
    """Runs a command of Jumok and returns what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "jumok", *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def write_pictures(data: Path, out: Path) -> list[str]:
    """captions.tsv and pictures/ of the training pictures; what is there is not written again."""
    table, directory = out / "captions.tsv", out / "pictures"
    if not table.exists():
        directory.mkdir(parents=True, exist_ok=True)
        rows, labels = read_idx(data, "train")
        pixels = (rows * 255).round().astype(np.uint8).reshape(-1, 28, 28, 1)
        lines = []
        for number, (picture, label) in enumerate(zip(pixels, labels, strict=True)):
            (directory / f"{number:05}.png").write_bytes(png_bytes(picture))
            lines.append(f"{number:05}.png\t{CAPTIONS[label][number % 2]}\n")
        table.write_text("".join(lines), encoding="utf-8")  # last: it says that all pictures are there
    return [str(table), str(directory)]


def train(files: list[str], run: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Trains, or continues, and says how it went."""
    known = run.with_suffix(".json")
    if not known.exists():
        started = time.perf_counter()
        command = ["train", "painter", *files, "-o", str(run), "--minutes", str(arguments.minutes)]
        jumok(*command, "--seed", str(arguments.seed), *(f"--set={setting}" for setting in arguments.set))
        taken = (time.perf_counter() - started) / 60
        known.write_text(json.dumps({"minutes": taken, "measured": MEASURED}), encoding="utf-8")
    card = json.loads((run / "model" / "card.json").read_text(encoding="utf-8"))
    stage = json.loads((run / "first_stage" / "model" / "card.json").read_text(encoding="utf-8"))
    result: dict[str, Any] = json.loads(known.read_text(encoding="utf-8"))
    return result | {"parameters": card["parameters"], "bits": card["metrics"]["bits_per_token"]} | stage["metrics"]


def make_recogniser(data: Path) -> Any:
    """A support vector machine that has learned from real pictures."""
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    pictures, labels = read_idx(data, "train")
    recogniser = make_pipeline(PCA(60, whiten=True), SVC(C=8, gamma=0.012))
    return recogniser.fit(pictures[:SVM_PICTURES], labels[:SVM_PICTURES])


def recognised(recogniser: Any, pictures: Pictures, label: int) -> float:
    """The share of the pictures that are taken for that kind."""
    return float((recogniser.predict(pictures.reshape(-1, 784) / np.float32(255)) == label).mean())


def variety(pictures: Pictures) -> float:
    """How far pictures of one kind are from each other on average: the root of their variance over all pixels."""
    return float(np.sqrt((pictures / 255.0).var(axis=0).mean()))


def measure(data: Path, run: Path, options: dict[str, float]) -> tuple[dict[str, Any], list[Pictures]]:
    """What is recognised, kind by kind, and painted pictures of every kind."""
    painter, recogniser = load(run, task="painter"), make_recogniser(data)
    rows, labels = read_idx(data, "t10k")
    real = (rows * 255).round().astype(np.uint8).reshape(-1, 28, 28)
    redrawn = painter.engine.draw(painter.engine.encode(real[..., None]))[..., 0]
    kinds, painted = [], []
    for label, captions in enumerate(CAPTIONS):
        both = [pictures[..., 0] for pictures in painter.paint_arrays(captions, n=PAINTED, **options)]
        painted.append(np.concatenate(both))
        of_kind = labels == label
        kinds.append(
            {
                "languages": [recognised(recogniser, pictures, label) for pictures in both],
                "real": recognised(recogniser, real[of_kind], label),
                "redrawn": recognised(recogniser, redrawn[of_kind], label),
                "variety": variety(painted[-1]) / variety(real[of_kind]),
            }
        )
        print(captions, kinds[-1], flush=True)
    return {"kinds": kinds, "options": options}, painted


def save_sheet(painted: list[Pictures]) -> None:
    """A row for each kind, English captions first."""
    from PIL import Image

    step = PAINTED * 2 // SHOWN
    contact_sheet([Image.fromarray(one) for kind in painted for one in kind[::step][:SHOWN]], columns=SHOWN).save(SHEET)


def page(result: dict[str, Any], trained: dict[str, Any], command: str) -> str:
    """The page with the figures."""
    kinds = result["kinds"]
    painted = [float(np.mean([kind["languages"][number] for kind in kinds])) for number in range(2)]
    rows = [
        f"| {' · '.join(captions)} | {' | '.join(f'{share:.0%}' for share in kind['languages'])} "
        f"| {kind['redrawn']:.1%} | {kind['real']:.1%} | {kind['variety']:.2f} |"
        for captions, kind in zip(CAPTIONS, kinds, strict=True)
    ]
    redrawn, real, varied = (float(np.mean([kind[name] for kind in kinds])) for name in ("redrawn", "real", "variety"))
    options = " ".join(f"--{name} {value:g}" for name, value in result["options"].items())
    each = f"{LANGUAGES[0]} captions {painted[0]:.1%}, {LANGUAGES[1]} ones {painted[1]:.1%}"
    return f"""# Pictures of clothes from captions: Fashion-MNIST

`{command}` writes this page and its picture: after {trained["minutes"]:.1f} minutes of `jumok train painter` on the
60,000 training pictures, {PAINTED} pictures of each caption are painted (`jumok paint {options}`), and a support vector
machine that has learned from {SVM_PICTURES:,} real pictures says what it sees.
{describe_machine()} Trained: {trained["measured"]}.

**Recognised: {float(np.mean(painted)):.1%}** of {2 * PAINTED * len(kinds):,} painted pictures ({each}).
Of the real test pictures the same machine recognises {real:.1%}, and {redrawn:.1%} of them after their way through
image tokens and back.

| caption | English | Korean | real, redrawn from image tokens | real | variety |
|---|---|---|---|---|---|
{chr(10).join(rows)}
| mean | {painted[0]:.1%} | {painted[1]:.1%} | {redrawn:.1%} | {real:.1%} | {varied:.2f} |

Variety: the standard deviation of painted pictures of one kind, divided by that of real ones. The painter has
{trained["parameters"]:,} parameters and needs {trained["bits"]:.2f} bits for an image token of validation pictures; the
image tokens give those back with {trained["psnr"]:.1f} dB and use {trained["codes_used"]:.0%} of their codes.

![{SHOWN} painted pictures of each kind, a row for each]({SHEET.name})
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--guidance", type=float, default=2.0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        out = arguments.out or Path(temporary)
        run = out / f"run-{arguments.minutes:g}-{arguments.seed}"
        trained = train(write_pictures(arguments.data, out), run, arguments)
        options = {"temperature": arguments.temperature, "guidance": arguments.guidance}
        result, painted = measure(arguments.data, run, options)
    save_sheet(painted)
    given = "".join(f" --set {setting}" for setting in arguments.set)
    command = f"python benchmarks/painter.py --data DIRECTORY --minutes {arguments.minutes:g}{given}"
    PAGE.write_text(page(result, trained, command), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
