"""What helps who types: completion in real shells, the man page, versions, the JSON Schema of recipes."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time

import tutti_run
from tutti_run import EXAMPLES, TUTTI

PYTHON = os.environ.get("TUTTI_TORCH_PYTHON", "python3")
ASK_BASH = """
source <("$TUTTI" completion bash)
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_tutti
printf '%s\\n' "${COMPREPLY[@]}"
"""
# Reads a schema, then recipes; prints a line for each: "ok", or the path of the first error and its message.
VALIDATE = """
import json, sys, tomllib
import jsonschema
schema = json.load(open(sys.argv[1]))
validator = jsonschema.Draft7Validator(schema)
validator.check_schema(schema)
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        recipe = tomllib.load(file)
    error = jsonschema.exceptions.best_match(validator.iter_errors(recipe))
    print("ok" if error is None else ".".join(map(str, error.absolute_path)) + ": " + error.message.split(chr(10))[0])
"""
WRONG = {  # a recipe's change, and what the error says
    ('lr = 0.1', 'lr = "fast"'): "optimizer.lr: 'fast' is not of type 'number'",
    ('lr = 0.1', 'lr = -1'): "optimizer.lr: -1 is less than the minimum of 0",
    ('lr = 0.1', 'larning_rate = 0.1'): "'larning_rate'",
    ('kind = "sgd"', 'kind = "sgdd"'): "optimizer.kind: 'sgdd' is not one of",
    ('hidden = [128, 64]', 'depth = 20'): "'depth'",
    ('max_duration = "20ep"', 'max_duration = "20 epochs"'): "train.max_duration: '20 epochs' does not match",
    ('batch_size = 96', ''): "data.train",
    ('path = "data/digits.h5"', ''): "data",
    ('run_name = "digits"', 'run_nam = "digits"'): "'run_nam'",
    ('[optimizer]', '[optimiser]'): "'optimizer' is a required property",
    ('[checkpoint]', '[checkpiont]'): "'checkpiont'",
    ('batch_size = 96', 'batch_size = 96\narrays = { input = 3 }'): "data.train.arrays",
    ('max_duration = "20ep"', 'max_duration = -1'): "train.max_duration",
    ('max_duration = "20ep"', 'max_duration = "5tok"\ngrad_accum = [[0]]'): "train.grad_accum",
    ('batch_size = 96', 'batch_size = 96\ndevice_batch_size = 48'): "data.train",
    ('shuffle = true', 'transforms = [{ kind = "flap" }]'): "data.train.transforms.0.kind: 'flap' is not one of",
    ('[checkpoint]', '[[algorithms]]\nkind = "cutmix"\nalfa = 1\n[checkpoint]'): "'alfa'",
    ('[checkpoint]', '[scheduler]\ngamma = 0.1\n[checkpoint]'): "'gamma'",
    ('shuffle = true', 'shuffle = 1'): "data.train.shuffle: 1 is not of type 'boolean'",
}
RIGHT = [
    ('max_duration = "20ep"', 'max_duration = 20'),
    ('max_duration = "20ep"', 'max_duration = "1h30m"'),
    ('max_duration = "20ep"', 'max_duration = " 1_000 BA"\ngrad_accum = [[0, 1], [7, 2]]'),
    ('max_duration = "20ep"', 'max_duration = "2ep"\ngrad_accum = "auto"\nprecision = "amp"'),
    ('batch_size = 96', 'device_batch_size = 96'),
    ('batch_size = 96', 'batch_size = 96\narrays = { input = "input", target = "target" }\nmean = [0.5]'),
    ('batch_size = 96', 'batch_size = 96\ntransforms = [{ kind = "random_crop", size = [8, 8] }, { kind = "flip" }]'),
    ('[checkpoint]', '[[algorithms]]\nkind = "MixUp"\n[[algorithms]]\nkind = "cutmix"\nalpha = 0.5\n[checkpoint]'),
    ('[checkpoint]', '[[callbacks]]\nkind = "early_stopper"\nmonitor = "CrossEntropy"\n[checkpoint]'),
    ('[checkpoint]', '[scheduler]\nt_max = "3ep"\n[checkpoint]'),
]


def output_of(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, **options)
    if done.returncode != 0:
        raise AssertionError(f"{words}: exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def offered(*words, folder):
    """What bash offers for the last word; --option=value is three words."""
    environment = {**os.environ, "TUTTI": TUTTI}
    return output_of("bash", "-c", ASK_BASH, "bash", TUTTI, *words, cwd=folder, env=environment).split()


class Completion(tutti_run.RunTest):
    def setUp(self):
        super().setUp()
        for name in ("mine.toml", "notes.txt"):
            (self.folder / name).touch()
        (self.folder / "runs").mkdir()

    def offered(self, *words):
        return offered(*words, folder=self.folder)

    def test_bash_knows_commands_and_options(self):
        self.assertEqual(self.offered("tr"), ["train"])
        self.assertIn("simulate", self.offered(""))
        self.assertIn("--version", self.offered("--"))
        self.assertEqual(self.offered("train", "--lo"), ["--local-ranks"])
        self.assertEqual(self.offered("train", "mine.toml", "--run"), ["--run-dir"])
        self.assertEqual(self.offered("help", "pre"), ["predict"])
        self.assertEqual(self.offered("completion", ""), ["bash", "zsh", "fish"])

    def test_bash_knows_which_files_an_argument_may_be(self):
        self.assertEqual(sorted(self.offered("train", "")), ["mine.toml", "runs"])
        self.assertEqual(self.offered("train", "mine.toml", "--run-dir", ""), ["runs"])
        self.assertEqual(self.offered("train", "mine.toml", "--run-dir", "=", "ru"), ["runs"])
        self.assertEqual(self.offered("train", "--run-dir", "runs", "m"), ["mine.toml"])
        self.assertEqual(sorted(self.offered("train", "mine.toml", "--resume", "")),
                         ["auto", "mine.toml", "notes.txt", "runs"])
        self.assertEqual(self.offered("stop", ""), ["runs"])
        self.assertEqual(self.offered("train", "mine.toml", ""), [])

    def test_bash_knows_keys_and_names(self):
        self.assertEqual(self.offered("train", "--set", "optimizer.nest"), ["optimizer.nesterov="])
        self.assertEqual(self.offered("train", "--set", "train.max_d"), ["train.max_duration="])
        self.assertEqual(self.offered("train", "--set", "=", "model.kin"), ["model.kind="])
        self.assertEqual(self.offered("explain", "SpeedM"), ["SpeedMonitor"])
        self.assertEqual(self.offered("explain", "learning", "dampe"), ["dampening"])
        self.assertEqual(self.offered("list", "opt"), ["optimizers"])

    def test_fish(self):
        if not shutil.which("fish"):
            self.skipTest("there is no fish")
        script = self.folder / "tutti.fish"
        script.write_text(output_of(TUTTI, "completion", "fish"))
        environment = {**os.environ, "PATH": f"{pathlib.Path(TUTTI).parent}:{os.environ['PATH']}"}

        def ask(line):
            told = output_of("fish", "-N", "-c", f"source {script}; complete -C '{line}'", cwd=self.folder,
                             env=environment)
            return [one.split("\t")[0] for one in told.splitlines()]
        self.assertEqual(ask("tutti tr"), ["train"])
        self.assertEqual(ask("tutti train --lo"), ["--local-ranks"])
        self.assertEqual(ask("tutti train m"), ["mine.toml"])
        self.assertEqual(ask("tutti stop ru"), ["runs/"])
        self.assertEqual(ask("tutti train --set optimizer.nest"), ["optimizer.nesterov="])
        self.assertEqual(ask("tutti completion z"), ["zsh"])
        self.assertIn("auto", ask("tutti train mine.toml --resume a"))
        self.assertEqual(ask("tutti train --run-dir=ru"), ["--run-dir=runs/"])
        self.assertEqual(ask("tutti train mine.toml --run-dir ''"), ["runs/"])
        self.assertEqual(ask("tutti help pre"), ["predict"])

    def test_zsh(self):
        if not shutil.which("zsh"):
            self.skipTest("there is no zsh")
        (self.folder / "_tutti").write_text(output_of(TUTTI, "completion", "zsh"))
        with Zsh(self.folder) as zsh:
            for begun, whole in {"tutti tr": "tutti train ",
                                 "tutti train --lo": "tutti train --local-ranks=",
                                 "tutti train m": "tutti train mine.toml ",
                                 "tutti stop r": "tutti stop runs/",
                                 "tutti train --set optimizer.nest": "tutti train --set optimizer.nesterov=",
                                 "tutti train mine.toml --resume au": "tutti train mine.toml --resume auto ",
                                 "tutti list opt": "tutti list optimizers ",
                                 "tutti completion z": "tutti completion zsh ",
                                 "tutti help pre": "tutti help predict "}.items():
                self.assertEqual(zsh.after_tab(begun), whole)

    def test_the_man_page_has_no_faults(self):
        page = self.folder / "tutti.1"
        page.write_text(output_of(TUTTI, "man"))
        if not shutil.which("groff"):
            self.skipTest("there is no groff")
        done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", page], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = re.sub(r".\x08|\x1b\[[0-9;]*m", "", output_of("groff", "-man", "-Tutf8", page))
        for words in ("--local-ranks", "EXAMPLES" if "EXAMPLES" in text else "Examples:", "EXIT STATUS"):
            self.assertIn(words, text.replace("\u2010", "-").replace("\u2212", "-"))


class Zsh:
    """An interactive zsh that completes tutti with the functions of a folder."""

    def __init__(self, folder):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.environ["PATH"] = f"{pathlib.Path(TUTTI).parent}:{os.environ['PATH']}"
            os.environ["TERM"] = "dumb"
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.say(f"fpath=({folder} $fpath); autoload -U compinit; compinit -u -D\n"
                 "tell() { print -r -- '{'$BUFFER'}' }; zle -N tell; bindkey '^X' tell; PROMPT='re''ady> '\n")
        self.heard_until("ready> ")  # not what the terminal echoes

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.say("\x03exit\n")
        os.close(self.terminal)
        os.waitpid(self.process, 0)

    def say(self, text):
        os.write(self.terminal, text.encode())

    def heard_until(self, words):
        heard, until = "", time.monotonic() + tutti_run.PATIENCE_S
        while words not in heard:
            if not select.select([self.terminal], [], [], max(0, until - time.monotonic()))[0]:
                raise AssertionError(f"zsh never says {words!r}: {heard!r}")
            heard += os.read(self.terminal, 4096).decode(errors="replace")
        return heard

    def after_tab(self, line):
        """The line after a tab, as the widget `tell` prints it."""
        self.say(line + "\t\x18")
        heard = self.heard_until("}\r\n")
        self.say("\x15")  # clears the line
        return re.findall(r"\{(.*)\}", heard)[-1]


class Version(tutti_run.RunTest):
    def test_the_first_line_is_plain(self):
        lines = output_of(TUTTI, "--version").splitlines()
        self.assertRegex(lines[0], r"^tutti \d+\.\d+\.\d+$")
        self.assertEqual(output_of(TUTTI, "-V").splitlines(), lines)

    def test_the_instructions_of_a_run_are_named(self):
        """The journal has what ATen says itself."""
        for wanted in (None, "avx2", "default"):
            environment = dict(os.environ)
            environment.pop("ATEN_CPU_CAPABILITY", None)
            if wanted:
                environment["ATEN_CPU_CAPABILITY"] = wanted
            said = re.search(r"(?m)^CPU +(\S+)$", output_of(TUTTI, "--version", env=environment))[1]
            run = self.folder / f"run-{wanted}"
            output_of(TUTTI, "train", tutti_run.DIGITS, "--run-dir", run, "--set", "train.max_duration=1ba",
                      env=environment)
            journal = next(run.glob("journal/*/rank-0.journal")).read_bytes()[:1 << 16]
            self.assertTrue(f'"cpu":"{said}"'.encode() in journal, f"{said}, {wanted}")


class Schema(tutti_run.RunTest):
    def setUp(self):
        super().setUp()
        if subprocess.run([PYTHON, "-c", "import jsonschema, tomllib"], capture_output=True).returncode:
            self.skipTest(f"{PYTHON} has no jsonschema")
        self.schema = self.folder / "tutti.schema.json"
        self.schema.write_text(output_of(TUTTI, "explain", "--schema"))

    def judged(self, paths):
        return output_of(PYTHON, "-c", VALIDATE, self.schema, *paths).splitlines()

    def test_examples_are_good(self):
        recipes = [path for path in EXAMPLES.glob("**/*.toml") if "[model]" in path.read_text()]
        self.assertGreater(len(recipes), 8)
        for path, verdict in zip(recipes, self.judged(recipes)):
            self.assertEqual(verdict, "ok", path)

    def test_a_resolved_recipe_is_good(self):
        run = tutti_run.trained(train__max_duration="1ba")
        self.assertEqual(self.judged([run / "recipe.toml"]), ["ok"])

    def changed(self, changes):
        paths = []
        for number, (old, new) in enumerate(changes):
            paths.append(self.folder / f"{number}.toml")
            text = tutti_run.DIGITS.read_text()
            self.assertIn(old, text)
            paths[-1].write_text(text.replace(old, new, 1))
        return paths

    def test_wrong_recipes_are_not(self):
        for said, verdict, change in zip(WRONG.values(), self.judged(self.changed(WRONG)), WRONG):
            self.assertIn(said, verdict, change)

    def test_valid_recipes_are_accepted(self):
        paths = self.changed(RIGHT)
        for verdict, change, path in zip(self.judged(paths), RIGHT, paths):
            self.assertEqual(verdict, "ok", change)
            resolved = subprocess.run([TUTTI, "check", path, "--set", f"data.train.path={EXAMPLES / 'data/digits.h5'}",
                                       "--set", f"data.eval.path={EXAMPLES / 'data/digits.h5'}"],
                                      capture_output=True, text=True)
            self.assertEqual(resolved.returncode, 0, f"{change}: {resolved.stderr}")


if __name__ == "__main__":
    tutti_run.main()
