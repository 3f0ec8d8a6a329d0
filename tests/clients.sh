#!/bin/bash
# tests/clients.sh BUILD: weights of torchvision's and transformers' models go through tutti and back
# (clients.py), its gradients are the clients' (clients_gradients.py), clients' networks train under all
# strategies (clients_trained.py), tokenizers give the ids of Hugging Face's (clients_tokenizers.py), tables
# of pandas and datasets of MosaicML Streaming are read (clients_tables.py, clients_mds.py), adapters of
# PEFT's go in and out (clients_lora.py), so do UNets of diffusers' (clients_diffusion.py), programs of
# theirs, timm's, segmentation_models_pytorch's and diffusers' give what PyTorch gives
# (tests/golden/make_exported.py), and image files and transforms what Pillow and torchvision give
# (make_images.py), with the clients' pinned versions in an environment of their own, beside setup.sh's.
set -euo pipefail
readonly root=$(dirname "$(dirname "$(readlink -f "$0")")")
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/tutti
readonly build=${1:?the build folder is missing}
readonly torch=$cache/torch-2.11.0 clients=$cache/clients-2.11.0

# The name says what is in it: with tokenizers and sentencepiece.
if [ ! -e "$clients/complete-2" ]; then
  rm -rf "$clients"
  "$torch/bin/python" -m venv "$clients"
  # The torch of setup.sh, not one more.
  "$torch/bin/python" -c 'import site; print(site.getsitepackages()[0])' \
    > "$("$clients/bin/python" -c 'import site; print(site.getsitepackages()[0])')/torch.pth"
  "$clients/bin/python" -m pip --disable-pip-version-check install -q transformers==5.0.0 safetensors==0.8.0 \
    tokenizers==0.22.2 sentencepiece==0.2.3 protobuf==7.36.2
  "$clients/bin/python" -m pip --disable-pip-version-check install -q h5py==3.16.0 importlib-metadata==9.0.0 \
    requests==2.32.5 pillow==12.3.0
  "$clients/bin/python" -m pip --disable-pip-version-check install -q --no-deps torchvision==0.26.0 \
    timm==1.0.31 segmentation-models-pytorch==0.6.0 diffusers==0.42.1 \
    webdataset==1.0.2 braceexpand==0.1.7
  touch "$clients/complete-2"
fi
# Added later than the others.
if [ ! -e "$clients/tables" ]; then
  "$clients/bin/python" -m pip --disable-pip-version-check install -q --no-deps pandas==3.1.1 \
    pyarrow==26.0.1 python-dateutil==4.0.0 six==1.17.0
  touch "$clients/tables"
fi
if [ ! -e "$clients/shards" ]; then
  # Streaming asks for an older transformers than the one tested here; it runs with this one.
  "$clients/bin/python" -m pip --disable-pip-version-check install -q --no-deps mosaicml-streaming==0.13.0
  "$clients/bin/python" -m pip --disable-pip-version-check install -q brotli==1.2.1 \
    catalogue==2.0.10 cramjam==2.14.0 filelock==4.3.1 python-snappy==0.7.3 xxhash==4.1.0 zstd==1.5.7.2
  touch "$clients/shards"
fi
if [ ! -e "$clients/lora" ]; then
  "$clients/bin/python" -m pip --disable-pip-version-check install -q --no-deps peft==0.18.1 \
    accelerate==1.12.0 psutil==7.2.2
  touch "$clients/lora"
fi
for tests in clients clients_gradients clients_trained clients_tokenizers clients_tables clients_mds \
             clients_lora clients_diffusion; do
  TUTTI_BUILD_DIR=$build "$clients/bin/python" "$root/tests/$tests.py"
done

programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
"$clients/bin/python" "$root/tests/golden/make_exported.py" --clients --to "$programs"
"$clients/bin/python" "$root/tests/golden/make_images.py" --more --to "$programs"
TUTTI_GOLDEN_DIR=$programs "$build/tests/golden_test" --gtest_filter='*ExportedGolden*:*ImagesGolden*'
