"""What `cmake --install` puts down is enough for a program of one's own, built outside the tree."""
import re
import shutil
import subprocess

import tutti_run
from tutti_run import BUILD, SOURCE


def last_accuracy(run):
    key = "metrics/eval/MulticlassAccuracy"
    return [line[key] for line in tutti_run.metrics(run) if key in line][-1]


class Install(tutti_run.RunTest):
    def call(self, *words, **options):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def build_examples(self):
        installed, sources = self.folder / "installed", self.folder / "sources"
        self.call("cmake", "--install", BUILD, "--prefix", installed)
        shutil.copytree(SOURCE / "examples/cpp", sources)
        shutil.copy(SOURCE / "examples/data/digits.h5", sources)
        self.call("cmake", "-S", sources, "-B", sources / "build", f"-DCMAKE_PREFIX_PATH={installed}")
        self.call("cmake", "--build", sources / "build")
        return installed, sources, sources / "build"

    def test_headers_are_included_by_the_name_of_tutti(self):
        self.call("cmake", "--install", BUILD, "--prefix", self.folder)
        self.assertEqual([path.name for path in (self.folder / "include").iterdir()], ["tutti"])
        headers = list(self.folder.glob("include/**/*.h"))
        own = [path for path in headers if re.search(r'^#include "', path.read_text(), re.M)]
        self.assertEqual(own, [])
        for header in headers:
            for name in re.findall(r"^#include <(tutti/.*)>", header.read_text(), re.M):
                self.assertTrue((self.folder / "include" / name).exists(), f"{header} includes {name}")
        self.assertGreater(len(headers), 100)

    def test_programs_are_built_and_train(self):
        installed, sources, build = self.build_examples()
        losses = re.findall(r"loss (\S+),", self.call(build / "own_loop"))
        self.assertEqual(len(losses), 5)
        words = [build / "train_digits", sources / "train_digits.toml", SOURCE / "examples/data/digits.h5"]
        told = self.call(*words, cwd=self.folder)
        self.assertEqual(len(re.findall(r"^epoch \d+: loss", told, re.M)), 10)
        self.assertGreater(float(re.search(r"MulticlassAccuracy\s+(\S+)", told).group(1)), 0.85)
        alone = (self.folder / "runs/train_digits").rename(self.folder / "alone")
        done = tutti_run.Running([tutti_run.MPIRUN, "-np", "2", *map(str, words)], folder=self.folder).wait()
        self.assertEqual(done.code, 0, done.text)
        self.assertEqual(len(re.findall(r"epoch \d+: loss", done.text)), 10)
        for ranks in ([], [tutti_run.MPIRUN, "-np", "2"]):
            done = tutti_run.Running([*ranks, str(words[0]), str(words[1]), "absent.h5"], folder=self.folder).wait()
            self.assertEqual(done.errors(), ["error: absent.h5: no such file"], done.text)
            self.assertEqual(done.code, 2)
        self.assertTrue((installed / "bin/tutti").exists())
        self.assertGreater(len(tutti_run.metrics(alone)), 100)

    def test_a_plugin_brings_what_a_recipe_names(self):
        installed, sources, _ = self.build_examples()
        recipe, run, command = sources / "plugin.toml", self.folder / "run", installed / "bin/tutti"
        told = self.call(command, "train", recipe, "--run-dir", run)
        self.assertEqual(len(re.findall(r"^epoch \d+: loss", told, re.M)), 4, "its algorithm halves the training")
        self.assertRegex(told, r"(?m)^[1-9]\d+ values logged$")
        replayed = self.call(command, "replay", run)
        self.assertIn("replayed", replayed)
        self.assertNotIn("values logged", replayed)
        self.assertIn('width = 24', self.call(command, "check", recipe))
        told = self.call(command, "eval", recipe, "--checkpoint", run)
        accuracy = re.search(r"MulticlassAccuracy (\S+)", told).group(1)
        self.assertAlmostEqual(float(accuracy), last_accuracy(run), places=4, msg="its algorithm made another model")
        self.call(command, "predict", recipe, "--checkpoint", run, "--out", self.folder / "out.h5")
        wide = 'model.name = "wide": the library of [plugins] has no such model; there are narrow'
        for name, words in {"model.name=wide": wide, "plugins.library=none.so": "none.so"}.items():
            self.assertIn(words, self.refused(command, "check", recipe, "--set", name))
        bare = sources / "bare.toml"
        bare.write_text(recipe.read_text().replace("library =", "# library ="))
        self.assertIn("the recipe names no [plugins] library", self.refused(command, "check", bare))

    def test_a_library_that_is_no_plugin_of_this_build_is_refused(self):
        recipe = SOURCE / "examples/cpp/plugin.toml"
        other = 'const char* tutti_plugin_build_stamp() { return "tutti 0"; } void tutti_plugin(void* p) {}'
        for code, words in {other: "it was built for tutti 0; this is tutti 0.1", "int x;": "is no plugin"}.items():
            source, library = self.folder / "other.c", self.folder / "other.so"
            source.write_text(code)
            self.call("cc", "-shared", "-fPIC", "-o", library, source)
            told = self.refused(tutti_run.TUTTI, "check", recipe, "--set", f"plugins.library={library}",
                                "--set", f"data.train.path={SOURCE / 'examples/data/digits.h5'}")
            self.assertIn(words, told)

    def refused(self, *words):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_the_installed_command_trains(self):
        installed = self.folder / "installed"
        self.call("cmake", "--install", BUILD, "--prefix", installed)
        self.call(installed / "bin/tutti", "train", tutti_run.DIGITS, "--run-dir", self.folder / "run",
                  "--set", "train.max_duration=2ep")


if __name__ == "__main__":
    tutti_run.main()
