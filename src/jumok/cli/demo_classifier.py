"""jumok demo classifier: positive and negative reviews."""

from typing import Any

from jumok.cli.demo_training import DemoTraining
from jumok.demo.reviews import demo_reviews
from jumok.engines.loading import load

# Two layers are enough for a small corpus and a minute.
SETTINGS: dict[str, Any] = {"preset": "tiny", "model.encoder_layers": 2, "tokenizer.size": 600}
TRICKY = (
    "The soup was wonderful, but the service was awful.",
    "The story was not boring at all.",
    "The room was cold; still, the breakfast was lovely.",
)


def run_demo(demo: DemoTraining) -> None:
    """Train on reviews with negation and contrast, and classify held-out ones."""
    reviews = demo_reviews()
    train, test = reviews[:-1000], reviews[-1000:]
    data = demo.write("reviews.tsv", "".join(f"{label}\t{text}\n" for label, text in train))
    print(f"1. The built-in reviews → {data}")
    print(f"   {len(train):,} to train on, {len(test):,} to test on; praise and criticism, negation and contrast\n")
    demo.train("classifier", data, settings=SETTINGS)
    classifier = load(demo.run, task="classifier", device=demo.device)
    found = classifier.classify([text for _, text in test])
    right = sum(each.label == label for each, (label, _) in zip(found, test, strict=True))
    print(f"\n3. The test\n   correct: {right / len(test):.1%} of {len(test):,} reviews")
    for text, each in zip(TRICKY, classifier.classify(list(TRICKY)), strict=True):
        print(f"   {each.label} {each.probability:.0%}  {text}")
    print(f"""
4. Try it
   echo "The music was not bad, but the ending was dull." | jumok classify -m {demo.quoted_run} --explain 3
   jumok train classifier YOUR.tsv -o run      a label, a tab and a text in each line""")
