#!/bin/bash
# tools/gpu_bundle.sh [BUILD [FOLDER]]: packs tutti for a machine that has a GPU, PyTorch and nothing of this
# system's: executable, libraries and Open MPI, stripped, in FOLDER (BUILD/gpu_bundle), 64 MiB at most. There,
# `FOLDER/run COMMAND...` runs a command with this tutti and mpirun on PATH and the libtorch of the machine's
# python3 (or of TUTTI_PYTHON). libtorch must be the version that BUILD was made with.
set -euo pipefail
readonly source=$(dirname "$(dirname "$(readlink -f "$0")")")
readonly build=${1:-$source/build}
readonly folder=${2:-$build/gpu_bundle}
readonly most_mib=64
readonly mpi=lib/x86_64-linux-gnu/openmpi/lib/openmpi3  # where libmpi looks, below OPAL_PREFIX
readonly pmix=lib/x86_64-linux-gnu/pmix2/lib/pmix

die() { printf 'gpu_bundle: %s\n' "$*" >&2; exit 1; }

# Libraries that every machine has, or that must be the machine's own: the C library, the compiler's, those
# of libtorch and CUDA.
readonly theirs='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+|torch.*|c10.*|gomp.*|shm)|\
lib(cuda|cublas|cudnn|cufft|cusparse|cusolver|curand|nccl|nvrtc|nvJitLink|nvshmem|cupti|cufile|caffe2).*)\.so'

# The libraries, with their own, that the files name.
libraries_of() {
  ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    while read -r path; do
      [[ $(basename "$path") =~ ${theirs//$'\\\n'/} ]] || printf '%s\n' "$path"
    done
}

copy() {  # files to a folder of the bundle
  local -r to=$folder/$1
  shift
  mkdir -p "$to"
  cp -L "$@" "$to"
}

rm -rf "$folder"
copy bin "$build/tutti" "$(readlink -f "$(command -v mpirun)")" "$(command -v orted)"
mv "$folder/bin/orterun" "$folder/bin/mpirun"
[ -e "$build/libtutti_cuda.so" ] || die "$build has no libtutti_cuda.so: cmake says what it lacks"
copy lib "$build/libtutti.so" "$build/libtutti_cuda.so"  # no Parquet: libarrow is larger than all else
# Of Open MPI what ranks of one machine use; plugins for networks bring libraries that are larger than tutti.
mapfile -t plugins < <(find "/usr/$mpi" -name 'mca_*.so' |
  grep -vE '_(ofi|ucx|openib|psm2?|cm)\.so|_(fcoll|fs|io|sharedfp|fbtl)_')
copy "$mpi" "${plugins[@]}"
[ -d "/usr/$pmix" ] && copy "$pmix" "/usr/$pmix"/*.so
copy share/openmpi /usr/share/openmpi/*.txt
mapfile -t files < <(find "$folder" -type f \( -name '*.so' -o -path '*/bin/*' \))
mapfile -t libraries < <(libraries_of "${files[@]}" | grep -v "^$(readlink -f "$build")/")
copy lib "${libraries[@]}"
find "$folder" -type f ! -name '*.txt' -exec strip --strip-unneeded {} +

cat > "$folder/run" <<'RUN'
#!/bin/bash
here=$(dirname "$(readlink -f "$0")")
find='import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])'
torch=$("${TUTTI_PYTHON:-python3}" -c "$find") ||
  { echo "run: ${TUTTI_PYTHON:-python3} has no torch" >&2; exit 1; }
export LD_LIBRARY_PATH=$here/lib:$torch/lib
for lib in "$torch"/../nvidia/*/lib; do LD_LIBRARY_PATH+=:$lib; done
export OPAL_PREFIX=$here PMIX_INSTALL_PREFIX=$here/lib/x86_64-linux-gnu/pmix2 PATH=$here/bin:$PATH
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_plm=isolated
exec "$@"
RUN
chmod +x "$folder/run"

readonly mib=$(($(du -s --block-size=1M "$folder" | cut -f1)))
printf 'gpu_bundle: %s, %s MiB\n' "$folder" "$mib"
[ "$mib" -le $most_mib ] || die "more than $most_mib MiB"
