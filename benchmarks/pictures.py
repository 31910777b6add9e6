"""`jumok train classifier` on the pictures of Fashion-MNIST against scikit-learn, through the real commands.

    python benchmarks/pictures.py --data /usr/share/datasets/fashion-mnist --minutes 15 60

The directory holds the four IDX files; Debian's package dataset-fashion-mnist installs them there. The training sees
the 60,000 training pictures only and holds out its own validation pictures; the 10,000 test pictures are used once, at
the end. scikit-learn's classifiers have about a minute each on the same machine, and stand beside. With --out DIRECTORY
the runs and their results are kept there, and what is there already is not measured again.
"""

from __future__ import annotations

import argparse
import gzip
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
from sections import sections_of

PAGE = Path(__file__).with_suffix(".md")
FILES = "{part}-images-idx3-ubyte.gz", "{part}-labels-idx1-ubyte.gz"


def files_of(data: Path, part: str) -> list[str]:
    """The pictures and labels of "train" or "t10k"."""
    return [str(data / name.format(part=part)) for name in FILES]


def jumok(*arguments: str) -> str:
    """Runs a command of Jumok and returns what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "jumok", *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def measure(data: Path, run: Path, minutes: float, seed: int, settings: list[str]) -> dict[str, Any]:
    """One training and its test."""
    known = run.with_suffix(".json")
    if known.exists():
        return dict(json.loads(known.read_text(encoding="utf-8")))
    started = time.perf_counter()
    command = ["train", "classifier", *files_of(data, "train"), "-o", str(run), "--minutes", str(minutes)]
    jumok(*command, "--seed", str(seed), "--quiet", *(f"--set={setting}" for setting in settings))
    taken = (time.perf_counter() - started) / 60
    test = json.loads(jumok("evaluate", "-m", str(run), *files_of(data, "t10k"), "--json"))
    log = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    parameters = json.loads((run / "model" / "card.json").read_text(encoding="utf-8"))["parameters"]
    result = {"minutes": taken, "test": test, "epochs": log[-1]["epoch"], "parameters": parameters}
    known.write_text(json.dumps(result | {"measured": MEASURED}), encoding="utf-8")
    return result | {"measured": MEASURED}


def read_idx(data: Path, part: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
    """Pictures as rows of numbers from 0 to 1, and labels."""
    pictures, labels = (gzip.decompress(Path(file).read_bytes()) for file in files_of(data, part))
    rows = np.frombuffer(pictures, np.uint8, offset=16).reshape(-1, 784)
    return rows.astype(np.float32) / 255, np.frombuffer(labels, np.uint8, offset=8)


def scikit_learn(data: Path) -> list[tuple[str, float, float]]:
    """Name, accuracy on the test pictures and seconds of training. Sizes are such that each takes about a minute."""
    from sklearn.decomposition import PCA
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    pictures, labels = read_idx(data, "train")
    unseen, wanted = read_idx(data, "t10k")
    candidates: dict[str, tuple[Any, int]] = {
        "support vector machine (RBF), PCA to 60": (make_pipeline(PCA(60, whiten=True), SVC(C=8, gamma=0.012)), 40_000),
        "gradient boosting, PCA to 100": (
            make_pipeline(PCA(100), HistGradientBoostingClassifier(max_iter=100, early_stopping=False)),
            60_000,
        ),
        "extremely randomised trees": (ExtraTreesClassifier(200, n_jobs=-1), 60_000),
    }
    found = []
    for name, (model, count) in candidates.items():
        started = time.perf_counter()
        model.fit(pictures[:count], labels[:count])
        seconds = time.perf_counter() - started
        found.append((name, float(model.score(unseen, wanted)), seconds))
        print(*found[-1], flush=True)
    return found


def page(results: dict[float, dict[str, Any]], classical: list[tuple[str, float, float]], command: str) -> str:
    """The page with the figures; `results` by the minutes that were asked for."""
    rows = [
        f"| Jumok, {asked:g} minutes ({result['epochs']} epochs, {result['parameters']:,} parameters) "
        f"| {result['minutes']:.1f} min | **{result['test']['accuracy']:.2%}** "
        f"| {result['test']['pictures_per_second']:,.0f} | {result['measured']} |"
        for asked, result in results.items()
    ]
    rows += [
        f"| scikit-learn, {name} | {seconds:.0f} s | {accuracy:.2%} | | {MEASURED} |"
        for name, accuracy, seconds in classical
    ]
    return f"""# Pictures of clothes: Fashion-MNIST

`{command}` writes this page: accuracy on the 10,000 test
pictures after so many minutes of `jumok train classifier`, and of scikit-learn's classifiers. "Took" is the whole
command of training. {describe_machine()}

| | took | accuracy | pictures/s | measured |
|---|---|---|---|---|
{chr(10).join(rows)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--minutes", nargs="+", type=float, default=[15.0, 60.0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        out = arguments.out or Path(temporary)
        out.mkdir(parents=True, exist_ok=True)
        for minutes in arguments.minutes:
            run = out / f"fashion-{minutes:g}-{arguments.seed}"
            results[minutes] = measure(arguments.data, run, minutes, arguments.seed, arguments.set)
            print(results[minutes]["minutes"], results[minutes]["test"]["accuracy"], flush=True)
    lengths = " ".join(f"{minutes:g}" for minutes in arguments.minutes)
    command = f"python benchmarks/pictures.py --data DIRECTORY --minutes {lengths}"
    text = page(results, scikit_learn(arguments.data), command)
    PAGE.write_text(text + sections_of(PAGE), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
