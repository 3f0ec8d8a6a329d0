"""h5py reads whole tensors by their parameters' names from checkpoint.h5, however many ranks wrote it; nor does
the digest depend on that."""
import json
import os
import subprocess

import tutti_run
from tutti_run import trained

# Prints {name: [shape, sum, first number]} of every dataset at the root.
READ = """
import h5py, json, sys
with h5py.File(sys.argv[1], "r") as file:
    whole = {name: item[()] for name, item in file.items() if isinstance(item, h5py.Dataset)}
print(json.dumps({name: [list(a.shape), float(abs(a).sum()), float(a.flat[0])] for name, a in whole.items()}))
"""
INITIAL = {"train__max_duration": "1ba", "optimizer__lr": 0}  # no rounding that depends on the ranks
PYTHON = os.environ.get("TUTTI_TORCH_PYTHON", "python3")


def read(checkpoint):
    """What h5py sees, or None where there is no h5py."""
    command = [PYTHON, "-c", READ, checkpoint / "checkpoint.h5"]
    reading = subprocess.run(command, capture_output=True, text=True)
    if "No module named 'h5py'" in reading.stderr:
        return None
    reading.check_returncode()
    return json.loads(reading.stdout)


class Viewer(tutti_run.RunTest):
    def tensors(self, ranks, **options):
        seen = read(trained(ranks=ranks, **options) / "checkpoints" / "latest")
        if seen is None:
            self.skipTest(f"{PYTHON} has no h5py")
        return seen

    def test_whole_tensors_by_parameter_names(self):
        seen = self.tensors(2, train__max_duration="1ep")
        self.assertEqual({name: shape for name, (shape, _, _) in seen.items()},
                         {"0.weight": [128, 64], "0.bias": [128], "2.weight": [64, 128], "2.bias": [64],
                          "4.weight": [10, 64], "4.bias": [10]})

    def test_a_digest_does_not_depend_on_the_number_of_writers(self):
        digests = {tutti_run.digest(trained(ranks=ranks, **INITIAL)) for ranks in (1, 2, 3)}
        self.assertEqual(len(digests), 1, digests)
        self.assertRegex(digests.pop(), "^[0-9a-f]{16}$")

    def test_the_same_for_one_two_and_three_writers(self):
        one, two, three = (self.tensors(ranks, **INITIAL) for ranks in (1, 2, 3))
        self.assertEqual(one, two)
        self.assertEqual(one, three)
        self.assertGreater(one["0.weight"][1], 1)

    def test_buffers_and_odd_shapes_of_a_convolutional_network(self):
        options = {**INITIAL, "recipe": tutti_run.EXAMPLES / "digits_cnn.toml", "train__eval_interval": "0ba"}
        two, three = self.tensors(2, **options), self.tensors(3, **options)
        self.assertEqual(two.keys(), three.keys())
        self.assertTrue(any(name.endswith("running_var") for name in two), two.keys())
        for name in two:
            self.assertEqual(two[name][0], three[name][0])
            if name.endswith((".weight", ".bias")):
                self.assertEqual(two[name], three[name])


if __name__ == "__main__":
    tutti_run.main()
