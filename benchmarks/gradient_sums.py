"""One training step of two processes, which sum their gradients: after the backward pass, or while it still runs.

    python benchmarks/gradient_sums.py                    # small and base, loopback, 5 minutes; rewrites the page
    python benchmarks/gradient_sums.py --rates 0 1 10     # also with a network of 1 and 10 Gbit/s; needs root

Each process has one thread and a batch of 1,024 target tokens. The contenders take turns, each with a model of its own:

    no sums                 what computing alone costs
    one message             copied into one tensor after the backward pass, summed, copied back
    buckets, afterwards     the buckets of Jumok, all of them sent after the backward pass
    buckets, overlapped     the same, each sent as soon as it is full: what `jumok train` does
    DDP                     PyTorch's DistributedDataParallel, with gradients as views of its buckets

With a rate, each process is in a network namespace of its own, and the line between the two is limited by `tc`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from machine import describe_machine
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from jumok.model.config import ModelConfig, preset
from jumok.model.translator import Translator
from jumok.system import keep_freed_memory
from jumok.training.gradient_sums import BUCKET_BYTES, GradientSums
from jumok.training.objective import smoothed_cross_entropy

VOCABULARY, SENTENCES, LENGTH = 8_000, 64, 16
ALONE, ONE_MESSAGE, AFTERWARDS, OVERLAPPED, DDP = (
    "no sums",
    "one message",
    "buckets, afterwards",
    "buckets, overlapped",
    "DDP",
)
CONTENDERS = (ALONE, ONE_MESSAGE, AFTERWARDS, OVERLAPPED, DDP)
NAMESPACES = {"jumok-sums-0": "10.199.77.1", "jumok-sums-1": "10.199.77.2"}


class Loss(nn.Module):
    """The loss of one fixed batch as a module, as DDP needs it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.model = Translator(config)
        self.source, self.target, self.answer = torch.randint(4, VOCABULARY, (3, SENTENCES, LENGTH))

    def forward(self) -> Tensor:
        states = self.model.states(self.source, self.target).flatten(0, 1)
        return smoothed_cross_entropy(states, self.model.embed.tokens.weight, self.answer.flatten(), 0.1)


class Training:
    """A model, its optimizer, and one way to sum gradients."""

    def __init__(self, contender: str, config: ModelConfig, bucket_bytes: float) -> None:
        self.contender = contender
        self.loss: nn.Module = Loss(config)
        self.parameters = list(self.loss.parameters())
        self.optimizer = torch.optim.Adam(self.parameters, lr=1e-4, fused=True)
        if contender == DDP:
            self.loss = DistributedDataParallel(
                self.loss, gradient_as_bucket_view=True, bucket_cap_mb=bucket_bytes / 2**20
            )
        self.sums = GradientSums(self.parameters, bucket_bytes) if contender in (AFTERWARDS, OVERLAPPED) else None

    def step(self) -> None:
        """One update."""
        self.optimizer.zero_grad(set_to_none=self.contender != DDP)  # DDP would have to make its views again
        loss = self.loss()
        if self.sums and self.contender == OVERLAPPED:
            self.sums.before_last_backward()
        loss.backward()
        if self.sums:
            self.sums.send_rest()
            self.sums.finish()
        elif self.contender == ONE_MESSAGE:
            sum_as_one_message([parameter.grad for parameter in self.parameters if parameter.grad is not None])
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()


def sum_as_one_message(gradients: list[Tensor]) -> None:
    """As Jumok did it before it had buckets."""
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    for gradient, part in zip(gradients, torch.split(flat, [each.numel() for each in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


def measure(size: str, rounds: int, bucket_bytes: float) -> dict[str, list[tuple[float, float]]]:
    """In one of the two processes: for each contender wall and CPU seconds of each of its steps."""
    dist.init_process_group("gloo")
    config = preset(size, vocabulary=VOCABULARY)
    trainings = {name: Training(name, config, bucket_bytes) for name in CONTENDERS}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in CONTENDERS}
    for number in range(rounds + 1):
        first = number % len(CONTENDERS)
        for name in (*CONTENDERS[first:], *CONTENDERS[:first]):
            dist.barrier()
            wall, cpu = time.perf_counter(), time.process_time()
            trainings[name].step()
            if number:  # the first warms up
                seconds[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    dist.barrier()
    dist.destroy_process_group()
    return seconds


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def connect_namespaces(gigabits: float) -> None:
    """Two network namespaces, connected by a line of that rate."""
    names, devices = list(NAMESPACES), ("sums0", "sums1")
    for name in names:
        run("ip", "netns", "add", name)
    run("ip", "link", "add", devices[0], "netns", names[0], "type", "veth", "peer", devices[1], "netns", names[1])
    for (name, address), device in zip(NAMESPACES.items(), devices, strict=True):
        run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", device)
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "link", "set", device, "up")
        limit = ("rate", f"{gigabits}gbit", "burst", "1mb", "latency", "50ms")
        run("tc", "-n", name, "qdisc", "add", "dev", device, "root", "tbf", *limit)


def measure_two(size: str, gigabits: float, arguments: argparse.Namespace) -> dict[str, list[tuple[float, float]]]:
    """Start the two processes; returns what rank 0 has measured. A rate of 0 is the loopback device."""
    command = [sys.executable, __file__, "--sizes", size, "--rounds", str(arguments.rounds)]
    command += ["--bucket-bytes", str(arguments.bucket_bytes), "--measure"]
    address = next(iter(NAMESPACES.values())) if gigabits else "127.0.0.1"
    try:
        if gigabits:
            connect_namespaces(gigabits)
        started = []
        for rank, name in enumerate(NAMESPACES):
            environment = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": address, "MASTER_PORT": "29477"}
            environment |= {"OMP_NUM_THREADS": "1"} | ({"GLOO_SOCKET_IFNAME": f"sums{rank}"} if gigabits else {})
            inside = ["ip", "netns", "exec", name] if gigabits else []
            output = subprocess.PIPE if rank == 0 else subprocess.DEVNULL
            started.append(
                subprocess.Popen([*inside, *command], stdout=output, env={**os.environ, **environment}, text=True)
            )
        printed = started[0].communicate()[0]
        if any(process.wait() for process in started):
            sys.exit("A process has failed.")
        found: dict[str, list[tuple[float, float]]] = json.loads(printed)
        return found
    finally:
        for name in NAMESPACES if gigabits else ():
            subprocess.run(["ip", "netns", "del", name], check=False)


def table(results: list[dict[str, Any]], arguments: argparse.Namespace) -> str:
    """The results as a Markdown page."""
    options = " ".join(["--sizes", *arguments.sizes, "--rates", *map(str, arguments.rates)])
    lines = [
        "# Gradients summed after the backward pass, or while it runs",
        "",
        f"Two processes of one thread each on one machine, {SENTENCES * LENGTH:,} target tokens in each, vocabulary "
        f"{VOCABULARY:,}, gloo, buckets of {arguments.bucket_bytes / 2**20:.0f} MiB.",
        f"`python benchmarks/gradient_sums.py {options} --rounds {arguments.rounds}` writes this page; its docstring "
        "says what is compared.",
        describe_machine(),
        "",
        "| size | network | | one step | CPU time | × time of one message: median (middle half of the rounds) |",
        "|---|---|---|---|---|---|",
    ]
    for result in results:
        for name in CONTENDERS:
            steps, reference = result["seconds"][name], result["seconds"][ONE_MESSAGE]
            ratios = sorted(own[0] / other[0] for own, other in zip(steps, reference, strict=True))
            low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
            wall, cpu = (statistics.median(values) * 1e3 for values in zip(*steps, strict=True))
            network = f"{result['gigabits']:g} Gbit/s" if result["gigabits"] else "loopback"
            lines.append(
                f"| `{result['size']}` | {network} | {name} | {wall:,.0f} ms | {cpu:,.0f} ms "
                f"| {statistics.median(ratios):.2f} ({low:.2f}–{high:.2f}) |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=["small", "base"])
    parser.add_argument("--rates", nargs="+", type=float, default=[0.0], help="Gbit/s; 0: the loopback device")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--bucket-bytes", type=float, default=BUCKET_BYTES)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        keep_freed_memory()
        print(json.dumps(measure(arguments.sizes[0], arguments.rounds, arguments.bucket_bytes)))
        return
    results = [
        {"size": size, "gigabits": rate, "seconds": measure_two(size, rate, arguments)}
        for size in arguments.sizes
        for rate in arguments.rates
    ]
    page = table(results, arguments)
    print(page)
    Path(__file__).with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
