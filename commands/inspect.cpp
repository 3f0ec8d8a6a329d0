#include "commands/inspect.h"

#include <c10/util/accumulate.h>

#include <cstdio>
#include <map>
#include <sstream>

#include "commands/loaded_model.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/run_state.h"
#include "io/checkpoint/saved_state.h"
#include "io/checkpoint/state_patterns.h"
#include "io/formats/dtypes.h"
#include "job/checkpoint_options.h"
#include "runtime/error.h"

namespace tutti {
namespace {

Checkpoint newest_at(const std::string& path) try {
  return find_checkpoint(PosixDisk(), path, {warn_ignored});
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

std::string sizes_text(const Shape& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

// Parameters that are trained have optimizer state. Of a checkpoint of weights alone nothing is known.
std::string trained_text(const std::map<std::string, TensorSource::Entry>& entries) {
  int64_t trained = 0, others = 0;
  bool has_optimizer = false;
  for (const auto& [name, entry] : entries) {
    has_optimizer = has_optimizer || name.starts_with(kOptimizersPrefix);
    if (!name.starts_with(kModelPrefix)) continue;
    const std::string step = std::string(kOptimizersPrefix) + name.substr(kModelPrefix.size()) + "/step";
    (entries.count(step) > 0 ? trained : others) += c10::multiply_integers(entry.shape);
  }
  if (!has_optimizer) return "";
  return "  " + std::to_string(trained) + " numbers of the model are trained, " + std::to_string(others) +
         " are frozen parameters or buffers\n";
}

}  // namespace

std::string inspect_text(const std::string& path) {
  const Checkpoint checkpoint = newest_at(path);
  const RunState state = state_of(checkpoint);
  const Timestamp& time = state.time;
  std::ostringstream out;
  out << checkpoint.folder << "\n  run " << state.run_name << ", seed " << state.seed << ", written by "
      << state.world << (state.world == 1 ? " rank" : " ranks") << "\n  step " << time.batch << ", epoch "
      << time.epoch << " batch " << time.batch_in_epoch << ", " << time.sample << " samples, " << time.token
      << " tokens, " << time.total_wct << " s\n";
  const PosixDisk disk;
  const CheckpointTensors tensors(disk, checkpoint);
  out << trained_text(tensors.entries());
  for (const auto& [name, entry] : tensors.entries())
    out << "  " << name << "  " << dtype_name(entry.dtype) << "  " << sizes_text(entry.shape) << '\n';
  for (const auto& [name, text] : state.listeners) out << "  " << name << "  state\n";
  for (const auto& name : names_in_state())
    if (!state.weights_only && !StatePatterns(state.saved_without).fit(name))
      out << "  " << name << "  state\n";
  return out.str();
}

std::string inspect_digest(const std::string& path) {
  const PosixDisk disk;
  const uint64_t digest = tensors_digest(CheckpointTensors(disk, newest_at(path)), kModelPrefix);
  char text[32];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

}  // namespace tutti
