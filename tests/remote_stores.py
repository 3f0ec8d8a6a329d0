"""Checkpoints and data in stores that rclone, s3cmd and aws reach, on loopback: tests/remote_stores.sh."""
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "runs"))
import tutti_run  # noqa: E402
from tutti_run import digest, settings, train, trained, tutti  # noqa: E402

SHORT = {"train__max_duration": "20ba", "checkpoint__interval": "5ba"}
TOKENS = """
seed = 3
[model]
kind = "gpt"
n_layer = 1
n_embd = 16
n_head = 2
n_positions = 16
[data.train]
kind = "mds"
path = "cache"
remote = "REMOTE"
columns = { input = "tokens", target = "tokens" }
num_classes = 50
batch_size = 8
[[data.train.transforms]]
kind = "next_token"
[optimizer]
kind = "adamw"
[train]
max_duration = "1ep"
[remote]
command = "PROGRAM"
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_tokens(folder):
    """A dataset as MDSWriter writes it, of 16 samples of 16 tokens."""
    config = json.dumps({"column_encodings": ["ndarray:int32:16"], "column_names": ["tokens"],
                         "column_sizes": [64], "compression": None, "format": "mds", "hashes": [],
                         "size_limit": None}).encode()
    samples = [struct.pack("<16i", *((7 * i + j) % 50 for j in range(16))) for i in range(16)]
    head = 4 * (len(samples) + 2) + len(config)
    offsets = [head + 64 * i for i in range(len(samples) + 1)]
    shard = struct.pack(f"<{len(samples) + 2}I", len(samples), *offsets) + config + b"".join(samples)
    folder.mkdir()
    (folder / "shard.00000.mds").write_bytes(shard)
    described = {**json.loads(config), "samples": len(samples), "version": 2, "zip_data": None, "raw_data": {
        "basename": "shard.00000.mds", "bytes": len(shard), "hashes": {}}}
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": [described]}))


class Stores(tutti_run.RunTest):
    def setUp(self):
        super().setUp()
        self.environment = dict(os.environ)
        self.addCleanup(self.restore)

    def restore(self):
        os.environ.clear()
        os.environ.update(self.environment)

    def serve(self, *command):
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

    def serve_s3(self):
        """A bucket, and the programs' settings for it."""
        port = free_port()
        address = f"http://127.0.0.1:{port}"
        self.serve("moto_server", "-H", "127.0.0.1", "-p", str(port))
        for _ in range(600):
            try:
                urllib.request.urlopen(urllib.request.Request(f"{address}/bucket", method="PUT"))
                break
            except OSError:
                time.sleep(0.1)
        (self.folder / "s3cfg").write_text(
            f"[default]\nhost_base = 127.0.0.1:{port}\nhost_bucket = 127.0.0.1:{port}\nuse_https = False\n")
        os.environ.pop("AWS_CA_BUNDLE", None)  # which older versions of rclone refuse
        os.environ.update({
            "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": address, "S3CMD_CONFIG": str(self.folder / "s3cfg"),
            "RCLONE_CONFIG_S3_TYPE": "s3", "RCLONE_CONFIG_S3_PROVIDER": "Other",
            "RCLONE_CONFIG_S3_ENV_AUTH": "true", "RCLONE_CONFIG_S3_ENDPOINT": address})

    def checkpoints_come_back(self, program, folder, ranks=2):
        options = {**SHORT, "remote__command": program, "checkpoint__save_folder": folder,
                   "checkpoint__keep": 1}
        first, second = self.folder / "first", self.folder / "second"
        train(first, ranks=ranks, **options, train__stop_at="10ba")
        shutil.rmtree(first)
        resumed = train(second, "--resume", "auto", ranks=ranks, **options)
        self.assertIn("resumes after step 10,", resumed.text)
        self.assertNotIn("warning", resumed.text)
        self.assertEqual(digest(second), digest(trained(**SHORT)))
        third = train(self.folder / "third", **settings_of(options), checkpoint__load_path=folder)
        self.assertIn(f"fetched {folder}/ep1-ba20\n", third.text)
        shutil.rmtree(self.folder / "third")
        again = train(second, "--resume", "auto", ranks=ranks, **{**options, "train__max_duration": "25ba"})
        self.assertNotIn("fetched", again.text)
        # Of two checkpoints the older is removed, but the checkpoint that an attempt resumed from.
        fresh = train(self.folder / "fresh", "--resume", "auto", ranks=ranks,
                      **{**options, "train__max_duration": "30ba"})
        self.assertIn("resumes after step 25,", fresh.text)

    def data_come_too(self, program, remote, copy):
        write_tokens(self.folder / "tokens")
        subprocess.run(copy, check=True, stdout=subprocess.DEVNULL)
        recipe = self.folder / "tokens.toml"
        recipe.write_text(TOKENS.replace("REMOTE", remote).replace("PROGRAM", program))
        train(self.folder / "data", recipe=recipe, ranks=1)
        self.assertEqual((self.folder / "cache" / "shard.00000.mds").read_bytes(),
                         (self.folder / "tokens" / "shard.00000.mds").read_bytes())
        resumed = tutti("resume", self.folder / "data", *settings(train__max_duration="2ep")).wait()
        self.assertEqual(resumed.code, 0, resumed.text)

    def test_rclone_with_s3(self):
        self.serve_s3()
        self.checkpoints_come_back("rclone", "s3://bucket/runs/digits")
        self.data_come_too("rclone", "s3://bucket/tokens",
                           ["rclone", "copy", str(self.folder / "tokens"), "s3:bucket/tokens"])

    def test_rclone_with_webdav(self):
        port = free_port()
        (self.folder / "dav").mkdir()
        self.serve("rclone", "serve", "webdav", "--addr", f"127.0.0.1:{port}", str(self.folder / "dav"))
        os.environ.update({"RCLONE_CONFIG_DAV_TYPE": "webdav",
                           "RCLONE_CONFIG_DAV_URL": f"http://127.0.0.1:{port}"})
        self.checkpoints_come_back("rclone", "dav://runs/digits", ranks=2)
        folder = self.folder / "dav" / "runs" / "digits"
        kept = sorted(path.parent.name for path in folder.glob("*/manifest.json"))
        self.assertEqual(kept, ["ep1-ba25", "ep2-ba30"])

    def test_s3cmd(self):
        self.serve_s3()
        self.checkpoints_come_back("s3cmd", "s3://bucket/runs/digits")

    def test_aws(self):
        self.serve_s3()
        self.checkpoints_come_back("aws", "s3://bucket/runs/digits")
        self.data_come_too("aws", "s3://bucket/tokens",
                           ["aws", "s3", "cp", "--recursive", str(self.folder / "tokens"),
                            "s3://bucket/tokens"])


def settings_of(options):
    """Those of a run of its own that begins with these checkpoints."""
    return {key: value for key, value in options.items() if key != "checkpoint__save_folder"}


if __name__ == "__main__":
    tutti_run.main()
