"""Runs every command that README.md shows, in a scratch folder that looks like the source tree.

usage: readme_test.py SOURCE_DIR BUILD_DIR. Left out are those that set the machine up or need several nodes.
"""
import os
import re
import subprocess
import sys
import tempfile

NOT_HERE = ("make ", "mpirun -np 4 ", "mpirun -np 16 ", "#SBATCH", "srun ", "cmake ")


def commands(readme):
    """Indented lines outside fences, and lines after "$ " inside them."""
    fenced = False
    for line in readme.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced and line.startswith("$ "):
            yield line[2:]
        elif not fenced and line.startswith("    "):
            yield line.strip()


def shown_recipe(readme):
    return re.search(r"```toml\n(.*?)```", readme, re.S).group(1)


def run(command, folder):
    done = subprocess.run(command, shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=300)
    print(("ok     " if done.returncode == 0 else "FAILED ") + command, flush=True)
    if done.returncode:
        print(done.stdout)
    return done.returncode == 0


def main(source, build):
    with open(os.path.join(source, "README.md")) as file:
        readme = file.read()
    runnable = [c for c in commands(readme) if not c.startswith(NOT_HERE)]
    if len(runnable) < 8:
        sys.exit(f"found only {len(runnable)} commands: the README is not read rightly")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("examples", "tools", "docs"):
            os.symlink(os.path.join(source, name), os.path.join(folder, name))
        os.symlink(build, os.path.join(folder, "build"))
        with open(os.path.join(folder, "shown.toml"), "w") as file:
            file.write(shown_recipe(readme).replace('"data/', '"examples/data/'))
        runnable.append("build/tutti check shown.toml")
        results = [run(command, folder) for command in runnable]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
