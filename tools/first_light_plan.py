"""The checks of first_light.py, in the order in which they run: of most worth first."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import first_light_checks as device
import first_light_kernels as kernels
import first_light_late as late
import first_light_models as models
import first_light_ranks as ranks
import first_light_speed as speed


@dataclass(frozen=True)
class Check:
    number: int
    name: str
    run: Callable
    seconds: float  # on an H100, about; those of 14 and more are guessed

    @property
    def limit_s(self):
        """Seconds after which the check counts as hung."""
        return 30 + 3 * self.seconds


# First the two without which nothing else tells much, then what no card has run, then what has run on one.
CHECKS = [
    Check(1, "loads", device.loads, 5),
    Check(2, "digits", device.learns_digits, 10),
    Check(14, "sharding", ranks.shards, 30),
    Check(15, "late", late.begins_late, 25),
    Check(16, "averages", late.averages_weights, 10),
    Check(17, "overflow", models.skips_overflows, 8),
    Check(18, "predict", models.predicts, 6),
    Check(19, "generate", models.generates, 20),
    Check(20, "llama", models.trains_llama, 15),
    Check(21, "muon", models.trains_by_muon, 10),
    Check(22, "exported_vit", models.trains_exported_vit, 15),
    Check(23, "kernels", kernels.has_odd_sizes, 35),
    Check(3, "models", device.learns_models, 20),
    Check(4, "algorithms", device.runs_algorithms, 35),
    Check(7, "two_ranks", ranks.joins_ranks, 12),
    Check(8, "resume", device.resumes_after_a_kill, 8),
    Check(6, "out_of_memory", device.runs_out_of_memory, 15),
    Check(10, "less_memory", device.spends_less, 12),
    Check(11, "replay", device.replays, 8),
    Check(12, "exported", device.trains_programs, 5),
    Check(5, "memcheck", kernels.touches_its_memory, 30),
    Check(9, "waits", device.waits_for_the_device, 5),
    Check(25, "gpt2_124m_64", speed.figure("gpt2_124m_64", "gpt_tiny", 75), 25),
    Check(24, "deterministic", speed.is_deterministic, 40),
    Check(26, "gpt_1b3", speed.figure("gpt_1b3", "gpt_tiny", 60), 60),
    Check(27, "resnet50_graphs", speed.figure("resnet50_graphs", "resnet20", 40), 25),
    Check(13, "throughput", speed.is_fast, 110),
]


def check_of(word):
    """The check of a number or a name. Throws ValueError with the nearest name."""
    for check in CHECKS:
        if word in (str(check.number), check.name):
            return check
    names = [check.name for check in CHECKS]
    nearest = difflib.get_close_matches(word, names, 1) or [", ".join(names)]
    raise ValueError(f"no check is named '{word}'; did you mean {nearest[0]}?")
