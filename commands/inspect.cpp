#include "commands/inspect.h"

#include <cstdio>
#include <sstream>

#include "commands/loaded_model.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "runtime/error.h"

namespace tutti {
namespace {

Checkpoint open_checkpoint(const std::string& path) try {
  return find_checkpoint(PosixDisk(), path, warn_ignored);
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

std::string sizes_text(const at::Tensor& tensor) {
  std::string text;
  for (const int64_t size : tensor.sizes()) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

}  // namespace

std::string inspect_text(const std::string& path) {
  const Checkpoint checkpoint = open_checkpoint(path);
  const RunState state = RunState::from_json(checkpoint.state);
  std::ostringstream out;
  out << checkpoint.folder << "\n  run " << state.run_name << ", seed " << state.seed << ", written by "
      << state.world << (state.world == 1 ? " rank" : " ranks") << "\n  step " << state.step << ", epoch "
      << state.epoch << " batch " << state.batch_in_epoch << ", " << state.sample << " samples, "
      << state.token << " tokens, " << state.seconds << " s\n";
  for (const auto& [name, tensor] : checkpoint.tensors)
    out << "  " << name << "  " << c10::toString(tensor.scalar_type()) << "  " << sizes_text(tensor) << '\n';
  return out.str();
}

std::string inspect_digest(const std::string& path) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(weights_digest(open_checkpoint(path).tensors)));
  return text;
}

}  // namespace tutti
