"""jumok demo lm: a language model of Korean sentences."""

from typing import Any

from jumok.cli.demo_training import DemoTraining
from jumok.demo.pairs import demo_pairs
from jumok.engines.loading import load

SETTINGS: dict[str, Any] = {
    "preset": "tiny",
    "model.decoder_layers": 2,
    "model.d_model": 128,
    "model.d_ff": 256,
    "tokenizer.size": 2000,
}


def run_demo(demo: DemoTraining) -> None:
    """Train on the Korean side of the built-in corpus, and generate a few sentences."""
    data = demo.write("sentences.txt", "".join(f"{korean}\n\n" for _, korean in demo_pairs().train))
    print(f"1. The built-in Korean sentences → {data}\n")
    demo.train("language_model", data, settings=SETTINGS)
    generator = load(demo.run, task="language_model", device=demo.device)
    print("\n3. Generated sentences")
    for seed in range(5):
        print(f"   {generator.generate(seed=seed, temperature=0.8, top_p=0.95, max_tokens=60)}")
    print(f"""
4. Try it
   jumok generate -m {demo.quoted_run} --prompt "나는"
   jumok train lm YOUR.txt -o run""")
