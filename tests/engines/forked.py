"""Run in a process of its own by test_forking.py: python forked.py DIRECTORY. Prints "ok" for what works after a fork.

DIRECTORY holds a model of each task, exported to CTranslate2.
"""

import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SECONDS = 300  # what takes longer hangs
TEXT = "The small cat sees the dog."


def use(model: Any) -> Any:
    """What the model makes of a text, with everything that computes."""
    if model.task == "translator":
        return model.translate_batch([TEXT, "cat"]), model.score([TEXT], ["개"])
    if model.task == "classifier":
        return model.scores([TEXT, "cat"]).tolist()
    return model.generate(TEXT, temperature=0, max_tokens=5), model.generate(TEXT, max_tokens=5), model.score([TEXT])


def in_fork(function: Callable[[], object], leave: Callable[[int], object] = sys.exit) -> int:
    """Call a function in a forked process, which then ends as Python programs do, and return its exit status."""
    sys.stdout.flush()
    if process := os.fork():
        return os.waitpid(process, 0)[1]
    signal.alarm(SECONDS)
    leave(0 if function() else 1)
    return 1


def in_fork_of_thread(function: Callable[[], object]) -> int:
    """The same, forked by a thread, as some servers do."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(in_fork, function, os._exit).result()


def send_result(pipe: Any, model: Any) -> None:
    """What a spawned process does with a model that it was sent."""
    pipe.send((repr(model), use(model)))


def report(name: str, works: bool) -> None:
    print(name, "ok" if works else "fails", flush=True)


def main(directory: Path) -> None:
    import jumok

    paths = [directory / task / "model" for task in ("translator", "classifier", "language_model")]
    for engine in ("ctranslate2", "torch"):
        models = [jumok.load(path, engine) for path in paths]
        if engine == "torch":
            import torch

            torch.set_num_threads(2)
            torch.ones(1000, 1000) @ torch.ones(1000, 1000)  # starts the threads that a fork does not copy
        results = [use(model) for model in models]
        gc.freeze()  # or a forked process that ends searches, and so copies, all that was imported

        def works(models: list[Any] = models, results: list[Any] = results) -> bool:
            return [use(model) for model in models] == results

        report(f"{engine}: after a fork", in_fork(works) == 0)
        report(f"{engine}: after a fork in a thread", in_fork_of_thread(works) == 0)
        report(f"{engine}: not used after a fork", in_fork(lambda: True) == 0)
        report(f"{engine}: after two forks", in_fork(lambda works=works: in_fork(works) == 0) == 0)
        report(f"{engine}: in the first process", works())
    model = jumok.load(paths[0], threads=1)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=send_result, args=(theirs, model))
    process.start()
    report("sent to a spawned process", ours.poll(SECONDS) and ours.recv() == (repr(model), use(model)))
    process.join(SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
