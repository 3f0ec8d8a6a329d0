#include <c10/util/accumulate.h>

#include <cinttypes>
#include <cstdio>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/checkpoint_summary.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/run_state.h"
#include "io/checkpoint/state_patterns.h"
#include "recipe/toml_reader.h"
#include "runtime/disk.h"
#include "runtime/hashes.h"
#include "tests/fuzz/file_in_memory.h"
#include "tests/fuzz/targets.h"
#include "tests/io/checkpoint/whole_checkpoint.h"

namespace tutti::fuzz {
namespace {

std::string with_hash(const std::string& body) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016" PRIx64, XXH3_64bits(body.data(), body.size()));
  return std::string(R"({"hash":")") + hash + R"(","manifest":)" + body + "}";
}

}  // namespace

// The bytes are the body of a manifest of which the hash is right.
void manifest(const std::string& bytes) {
  write_file("checkpoints/ep1/rank-0.h5", std::string(4096, '\1'));
  write_file("checkpoints/ep1/manifest.json", with_hash(bytes));
  const PosixDisk disk;
  read_or_refuse([&] { checkpoint_summaries(disk, folder() + "/checkpoints"); });
  read_or_refuse([&] {
    const Checkpoint checkpoint = open_checkpoint(disk, folder() + "/checkpoints/ep1");
    read_or_refuse([&] { verify_files(disk, checkpoint); });
    const CheckpointTensors tensors(disk, checkpoint);
    for (const auto& [name, entry] : tensors.entries())
      if (c10::multiply_integers(entry.shape) < 1000) read_or_refuse([&] { read_all(tensors, name); });
  });
}

void run_state(const std::string& bytes) {
  read_or_refuse([&] {
    const RunState state = RunState::from_json(bytes);
    StatePatterns(state.saved_without).fit("timestamp");
    if (!(RunState::from_json(state.to_json()).time == state.time))
      throw std::logic_error("a state reads back as another one");
  });
}

}  // namespace tutti::fuzz
