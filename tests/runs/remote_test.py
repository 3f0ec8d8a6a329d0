"""Checkpoints in a remote store, which a command reaches that fails, hangs, is slow or dies."""
import json
import pathlib

import tutti_run
from tutti_run import digest, log, start, train, tutti

STORE = pathlib.Path(__file__).with_name("remote_store.sh")
SHORT = {"train__max_duration": "20ba", "checkpoint__interval": "5ba", "checkpoint__keep": -1}


def step_of(name):
    return int(name.split("-ba")[1])


class Remote(tutti_run.RunTest):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "store"
        self.bucket = self.root / "bucket" / "digits"
        self.root.mkdir()

    def options(self, **more):
        line = f"sh {STORE} {self.root}"
        return {**SHORT, "checkpoint__save_folder": "fake://bucket/{run_name}",
                "remote__upload_command": line + " put {source} {target}",
                "remote__fetch_command": line + " get {source} {target}",
                "remote__list_command": line + " ls {remote}",
                "remote__delete_command": line + " rm {remote}",
                "remote__retry_interval": "0sec", **more}

    def calls(self, verb):
        lines = (self.root / "calls").read_text().splitlines()
        return [line.split()[-1].removeprefix("fake://bucket/digits/") for line in lines
                if line.startswith(verb)]

    def complete(self):
        return sorted((path.parent.name for path in self.bucket.glob("*/manifest.json")), key=step_of)

    def test_a_bare_machine_resumes_after_a_kill_amid_an_upload_with_the_same_bits(self):
        (self.root / "failures").write_bytes(b"x" * 4)  # of five attempts
        (self.root / "slow").touch()
        run = self.folder / "run"
        running = start(run, **self.options(train__max_duration="10000ep"))
        running.wait_for(lambda: len(self.complete()) > 1 and self.calls("put")[-1].endswith("rank-1.h5"),
                         "a third copy under way")
        running.kill()
        (self.root / "slow").unlink()
        killed = run.rename(self.folder / "killed")
        self.assertNotIn(str(STORE), log(killed) + (killed / "recipe.toml").read_text())
        *_, left, newest = whole = self.complete()
        self.assertGreater(len(list(self.bucket.glob("ep*"))), len(whole), "a partial copy")
        self.assertEqual((self.bucket / "latest").read_text(), newest + "\n")
        put = self.calls("put")
        for name in whole:
            files = [file for file in put if file.startswith(name)]
            self.assertEqual(files[-1], f"{name}/manifest.json", "the last of its checkpoint")
        with (self.bucket / newest / "rank-0.h5").open("r+b") as file:
            file.seek(5000)
            file.write(b"damaged")
        end = step_of(left) + 5
        resumed = train(run, "--resume", "auto", **self.options(train__max_duration=f"{end}ba"))
        self.assertIn(f"warning: ignored: fake://bucket/digits/{newest}: ", resumed.text)
        self.assertIn(f"fetched fake://bucket/digits/{left}\n", resumed.text)
        self.assertIn(f"resumes after step {step_of(left)},", resumed.text)
        last = f"ep{end // 15}-ba{end}"
        self.assertEqual(digest(run), digest(killed / "checkpoints" / last))
        self.assertIn(last, self.complete())
        replayed = tutti("replay", run).wait()
        self.assertEqual(replayed.code, 0, replayed.text)
        self.starts_apart(run, last)

    def starts_apart(self, run, last):
        """A fresh run is kept out, and one that begins with these checkpoints has its own folder."""
        refused = start(self.folder / "fresh", ranks=1, **self.options()).wait()
        self.assertEqual(refused.code, 2, refused.text)
        self.assertIn("with which those of a run that starts afresh would be mixed", refused.text)
        checked = tutti("check", tutti_run.DIGITS, "--steps", 0, *tutti_run.settings(
            **{**self.options(), "checkpoint__load_path": "fake://bucket/digits"})).wait()
        self.assertEqual(checked.code, 0, checked.text)
        self.assertIn("checkpoint.load_path is of a remote store, and is not tried", checked.text)
        loaded = train(self.folder / "loaded", **{
            **self.options(train__max_duration=f"{step_of(last)}ba"), "checkpoint__load_path": "fake://bucket/digits",
            "checkpoint__save_folder": self.folder / "saved"})
        self.assertIn(f"resumes after step {step_of(last)},", loaded.text)

    def test_a_store_that_fails_never_stops_a_training_and_gets_the_rest_later(self):
        run = self.folder / "run"
        options = self.options(remote__num_attempts=2, remote__timeout="1sec", remote__finish_timeout="2sec",
                               train__max_duration="1000ba", checkpoint__interval="200ba", checkpoint__keep=2)
        (self.root / "broken").touch()
        refused = start(run, ranks=1, **options).wait()
        self.assertEqual(refused.code, 2, refused.text)
        self.assertIn("sh ..., which uploads tutti.txt, failed with exit code 5; what it printed is in", refused.text)
        self.assertNotIn("SECRET", refused.text)
        (self.root / "broken").unlink()
        running = start(run, ranks=1, **options)
        running.wait_for(lambda: "ep13-ba200 is in fake" in log(run), "the first copy")
        (self.root / "hangs").touch()
        finished = running.wait()
        self.assertEqual(finished.code, 3, finished.text)
        self.assertFalse(tutti_run.is_alive(int((self.root / "pid").read_text())), "it ends with the run")
        result = json.loads((run / "result.json").read_text())
        self.assertEqual(result["ended"], "max_duration")
        self.assertEqual(result["not_uploaded"][-1], "ep66-ba1000")
        self.assertIn("ep66-ba1000 not in fake://bucket/digits at the end of the run", finished.text)
        self.assertRegex(log(run), r"which uploads ep\d+-ba\d+/checkpoint.h5, was ended after 1 s; it is tried again")
        self.assertRegex(tutti("status", run).wait().text, "uploads +fake://bucket/digits: the newest is ep.*, . not")
        (self.root / "hangs").unlink()
        resumed = tutti("resume", run, *tutti_run.settings(**{key: value for key, value in options.items()
                                                             if "_command" in key})).wait()
        self.assertEqual(resumed.code, 0, resumed.text)
        self.assertEqual(self.complete()[-2:], ["ep53-ba800", "ep66-ba1000"])
        self.assertNotIn("not_uploaded", (run / "result.json").read_text())


if __name__ == "__main__":
    tutti_run.main()
