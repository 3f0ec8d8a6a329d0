#include "io/weights/weights.h"

#include <algorithm>
#include <span>

#include "io/weights/pickle.h"
#include "runtime/disk.h"
#include "tests/fuzz/file_in_memory.h"
#include "tests/fuzz/targets.h"
#include "tests/io/checkpoint/whole_checkpoint.h"

namespace tutti::fuzz {
namespace {

// Of large tensors only a few numbers are read, as models do that have other sizes.
void read_weights_at(const std::string& path) {
  const PosixDisk disk;
  const auto weights = open_weights(disk, path);
  for (const auto& [name, entry] : weights->entries()) {
    if (std::ranges::all_of(entry.shape, [](int64_t size) { return size <= 1000; }) &&
        entry.shape.size() <= 2)
      read_or_refuse([&] { read_all(*weights, name); });
  }
}

}  // namespace

void safetensors(const std::string& bytes) {
  read_or_refuse([&] { read_weights_at(write_file("weights.safetensors", bytes)); });
}

void torch_file(const std::string& bytes) {
  read_or_refuse([&] { read_weights_at(write_file("weights.pt", bytes)); });
}

void pickle(const std::string& bytes) {
  read_or_refuse([&] { Pickle(std::as_bytes(std::span(bytes)), "weights.pt"); });
}

void weights_index(const std::string& bytes) {
  static const bool is_there = [] {
    const std::string golden = "tests/golden/weights/gpt2_sharded/",
                      name = "model-00001-of-00003.safetensors";
    write_file("set/" + name, source_file(golden + name));
    return true;
  }();
  if (is_there)
    read_or_refuse([&] { read_weights_at(write_file("set/model.safetensors.index.json", bytes)); });
}

void hdf5_weights(const std::string& bytes) {
  read_or_refuse([&] { read_weights_at(write_file("weights.h5", bytes)); });
}

}  // namespace tutti::fuzz
