"""What tests against clients have in common: a folder of their own, and tutti."""
import os
import pathlib
import subprocess
import tempfile

import torch

SOURCE = pathlib.Path(__file__).resolve().parents[1]
TUTTI = pathlib.Path(os.environ.get("TUTTI_BUILD_DIR", SOURCE / "build")).resolve() / "tutti"
TOLERANCE = 1e-5  # of the outputs' size


def shaken(model):
    """The model, with vectors, norms and biases, that are no ones and zeros; in evaluation mode."""
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


class ClientCase:
    """To be joined with unittest.TestCase."""

    def setUp(self):
        torch.manual_seed(0)
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def tutti(self, *words, launcher=()):
        done = subprocess.run([*map(str, launcher), str(TUTTI), *map(str, words)], cwd=self.folder, text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def assert_close(self, got, wanted, tolerance=TOLERANCE):
        self.assertEqual(got.shape, wanted.shape)
        self.assertLessEqual((got - wanted).abs().max().item(), tolerance * wanted.abs().max().item())
