"""What `cmake --install` puts down is enough for a program of one's own, built outside the tree."""
import re
import shutil
import subprocess

import tutti_run
from tutti_run import BUILD, SOURCE


class Install(tutti_run.RunTest):
    def call(self, *words, **options):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_programs_are_built_and_train(self):
        installed, sources, build = (self.folder / name for name in ("installed", "sources", "build"))
        self.call("cmake", "--install", BUILD, "--prefix", installed)
        shutil.copytree(SOURCE / "examples/cpp", sources)
        self.call("cmake", "-S", sources, "-B", build, f"-DCMAKE_PREFIX_PATH={installed}")
        self.call("cmake", "--build", build)
        losses = re.findall(r"loss (\S+),", self.call(build / "own_loop"))
        self.assertEqual(len(losses), 5)
        words = [build / "train_digits", sources / "train_digits.toml", SOURCE / "examples/data/digits.h5"]
        told = self.call(*words, cwd=self.folder)
        self.assertEqual(len(re.findall(r"^epoch \d+: loss", told, re.M)), 10)
        self.assertGreater(float(re.search(r"MulticlassAccuracy\s+(\S+)", told).group(1)), 0.9)
        alone = (self.folder / "runs/train_digits").rename(self.folder / "alone")
        done = tutti_run.Running([tutti_run.MPIRUN, "-np", "2", *map(str, words)], folder=self.folder).wait()
        self.assertEqual(done.code, 0, done.text)
        self.assertEqual(len(re.findall(r"epoch \d+: loss", done.text)), 10)
        self.assertTrue((installed / "bin/tutti").exists())
        self.assertGreater(len(tutti_run.metrics(alone)), 100)

    def test_the_installed_command_trains(self):
        installed = self.folder / "installed"
        self.call("cmake", "--install", BUILD, "--prefix", installed)
        self.call(installed / "bin/tutti", "train", tutti_run.DIGITS, "--run-dir", self.folder / "run",
                  "--set", "train.max_duration=2ep")


if __name__ == "__main__":
    tutti_run.main()
