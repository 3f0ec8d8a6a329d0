"""Ranks of one host open no port: other machines, and other users of this one, have nothing to speak to."""
import pathlib

import tutti_run
from tutti_run import start

LISTENS = "0A"


def sockets_of(process):
    """The inodes of its sockets."""
    found = set()
    for file in pathlib.Path(f"/proc/{process}/fd").iterdir():
        try:
            target = str(file.readlink())
        except OSError:  # closed meanwhile
            continue
        if target.startswith("socket:["):
            found.add(target[len("socket:["):-1])
    return found


def ports_of(process):
    """Addresses at which it listens, as the kernel writes them."""
    sockets = sockets_of(process)
    lines = []
    for table in ("tcp", "tcp6"):
        path = pathlib.Path(f"/proc/{process}/net/{table}")
        lines += [line.split() for line in path.read_text().splitlines()[1:]] if path.exists() else []
    return [words[1] for words in lines if words[3] == LISTENS and words[9] in sockets]


class Ports(tutti_run.RunTest):
    def test_ranks_of_one_host_listen_at_none(self):
        run = self.folder / "run"
        running = start(run, ranks=2, train__max_duration="100000ep")
        running.wait_for(lambda: (run / "metrics.jsonl").exists(), "a step")
        ranks = running.ranks()
        self.assertEqual({rank: ports_of(process) for rank, process in ranks.items()}, {0: [], 1: []})
        running.kill()


if __name__ == "__main__":
    tutti_run.main()
