"""Machines that are network namespaces: each has its own network device, and one line connects them."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from commands import SOURCE

PORT = 29400


@dataclass(frozen=True)
class Machine:
    """A namespace with one network device and an address that exists only there."""

    name: str
    address: str

    @property
    def device(self) -> str:
        return f"{self.name}-0"

    def ip(self, *command: str) -> None:
        """The command `ip` in this machine."""
        subprocess.run(["ip", "-n", self.name, *command], check=True)

    def cut_off(self) -> None:
        """Pull the plug: packets are lost, and nobody is told."""
        self.ip("link", "set", self.device, "down")

    def connect(self) -> None:
        """Plug it in."""
        self.ip("link", "set", self.device, "up")

    def torchrun(self, host: "Machine", *arguments: str, cwd: Path) -> subprocess.Popen[str]:
        """Start one process in this machine, of a training with two machines."""
        command = ["ip", "netns", "exec", self.name, sys.executable, "-m", "torch.distributed.run"]
        command += ["--nnodes=2", "--nproc-per-node=1", "--max-restarts=3", "--rdzv-backend=c10d", "--rdzv-id=mine"]
        command += [f"--rdzv-endpoint={host.address}:{PORT}", f"--local-addr={self.address}"]
        # Both have the name of this computer, so torchrun cannot see from it which one it runs on.
        command += [f"--rdzv-conf=is_host={int(self == host)}"]
        environment = {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": self.device}
        environment |= {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        with open(cwd / f"{self.name}.err", "a") as errors:
            return subprocess.Popen(
                [*command, "-m", "jumok", *arguments],
                cwd=cwd,
                env={**os.environ, **environment},
                stdout=subprocess.DEVNULL,
                stderr=errors,
                text=True,
            )


@contextmanager
def two_machines() -> Iterator[Sequence[Machine]]:
    """Two machines with a line between them; the test is skipped where that is not allowed."""
    mark = secrets.token_hex(2)
    machines = [Machine(f"jk{mark}{number}", f"10.199.0.{number + 1}") for number in range(2)]
    try:
        for machine in machines:
            made = subprocess.run(["ip", "netns", "add", machine.name], capture_output=True, text=True)
            if made.returncode:
                pytest.skip(f"network namespaces cannot be made here: {made.stderr.strip()}")
        first, second = machines
        peer = ["peer", "name", second.device, "netns", second.name]
        first.ip("link", "add", first.device, "type", "veth", *peer)
        for machine in machines:
            machine.ip("addr", "add", f"{machine.address}/24", "dev", machine.device)
            machine.ip("link", "set", "lo", "up")
            machine.connect()
            # A connection whose packets are not answered ends after seconds instead of a quarter of an hour.
            retries = "net.ipv4.tcp_retries2=3"
            subprocess.run(["ip", "netns", "exec", machine.name, "sysctl", "-qw", retries], check=True)
        yield machines
    except FileNotFoundError as error:
        pytest.skip(f"{error.filename} is missing: network namespaces cannot be made here")
    finally:
        for machine in machines:
            subprocess.run(["ip", "netns", "del", machine.name], capture_output=True)
