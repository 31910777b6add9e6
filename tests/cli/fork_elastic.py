"""What torchrun does with `--standalone --nproc-per-node=2 --max-restarts=1 -m jumok`, but the processes that its agent
starts are forks of this one: see preloading.py."""

import sys

from preloading import preload
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from jumok.cli.app import run


def command(*arguments: str) -> None:
    """`jumok`, in a process of the agent."""
    if code := run(list(arguments)):
        sys.exit(code)


if __name__ == "__main__":
    preload()
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        max_restarts=1,
        start_method="fork",
        run_id="jumok",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
    )
    elastic_launch(config, command)(*sys.argv[1:])
