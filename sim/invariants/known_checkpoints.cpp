#include "sim/invariants/known_checkpoints.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/run_state.h"
#include "io/checkpoint/saved_state.h"
#include "runtime/error.h"
#include "runtime/random.h"
#include "training/engine/event.h"

namespace tutti {
namespace {

uint64_t hash(std::string_view bytes) { return std::hash<std::string_view>()(bytes); }

// A hash of all files of the folder, and of its path, which errors name.
uint64_t hash_of_folder(const Disk& disk, const std::string& folder) {
  RandomKey whole(hash(folder), "checkpoint");
  for (const std::string& name : disk.list(folder)) {
    const auto bytes = disk.read(folder + "/" + name);
    whole =
        whole.fold_in(hash(name)).fold_in(hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  return whole.bits();
}

// Listeners with state that a clock or a disk decides, or with the best value of a metric, whose last bits
// differ if an evaluation is split for lack of memory.
constexpr std::array<std::string_view, 3> kUncomparedListeners = {
    "callbacks/EarlyStopper", "callbacks/RuntimeEstimator",
    "callbacks/SpeedMonitor"};

bool is_uncompared(const std::string& listener) {
  return std::any_of(kUncomparedListeners.begin(), kUncomparedListeners.end(),
                     [&](std::string_view name) { return listener.starts_with(name); });
}

// Of metrics only those of training count: an evaluation cut by a request to stop is in no checkpoint.
SavedBits bits_of(const TensorSource& tensors, RunState state) {
  SavedBits bits{.weights = tensors_digest(tensors, kModelPrefix)};
  if (state.rest.any() && state.rest.at != ResumePoint::Place::kAtFitEnd) return bits;
  state.rest = {};
  for (Timestamp* time : {&state.time, &state.last_step.before})
    time->total_wct = time->iteration_wct = time->epoch_wct = time->batch_wct = 0;
  state.accumulation = {};
  state.plateau.best = 0;
  std::erase_if(state.metrics, [](const auto& one) { return !one.first.starts_with("train/"); });
  std::erase_if(state.listeners, [](const auto& one) { return is_uncompared(one.first); });
  bits.all = RandomKey(tensors_digest(tensors), state.to_json()).bits();
  return bits;
}

KnownCheckpoint parsed(const Disk& disk, const std::string& folder) try {
  const Checkpoint checkpoint = open_checkpoint(disk, folder);
  verify_files(disk, checkpoint);
  const RunState state = state_of(checkpoint);
  return {"", state.time.batch, bits_of(CheckpointTensors(disk, checkpoint), state)};
} catch (const OperatingError& error) {
  return {error.what()};
}

}  // namespace

const KnownCheckpoint& KnownCheckpoints::read(const Disk& disk, const std::string& folder) {
  const auto [known, fresh] = known_.try_emplace(hash_of_folder(disk, folder));
  if (fresh) known->second = parsed(disk, folder);
  return known->second;
}

}  // namespace tutti
