#include "io/checkpoint/checkpoint_summary.h"

#include <algorithm>
#include <filesystem>

#include "io/json/json_text.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr const char* kManifest = "/manifest.json";
constexpr int64_t kMostBytes = int64_t{1} << 60;  // of a checkpoint, whatever a damaged manifest says

// The pieces of a large model's files are most of the text.
bool keep(int, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
  return event != nlohmann::json::parse_event_t::key || parsed != "pieces";
}

void read(const nlohmann::json& manifest, CheckpointSummary& to) {
  for (const auto& file : manifest.at("files")) {
    ++to.files;
    const double bytes = std::clamp(file.at("bytes").get<double>(), 0.0, static_cast<double>(kMostBytes));
    to.bytes = std::min(kMostBytes, to.bytes + static_cast<int64_t>(bytes));
  }
  const auto& state = manifest.at("state");
  if (!state.is_object()) return;
  to.step = integer_member(state, "step");
  to.epoch = integer_member(state, "epoch");
}

CheckpointSummary summary_of(const Disk& disk, const std::string& checkpoints, const std::string& name) {
  CheckpointSummary summary{.name = name};
  try {
    const std::string text = disk.read_text(checkpoints + '/' + name + kManifest, kMostManifestBytes);
    read(parse_json(text, keep).at("manifest"), summary);
  } catch (const nlohmann::json::exception& error) {
    summary.problem = json_problem(error);
  } catch (const OperatingError& error) {
    summary.problem = error.what();
  }
  return summary;
}

// Hidden names are unfinished checkpoints; a link names one of the others.
bool is_checkpoint(const Disk& disk, const std::string& checkpoints, const std::string& name) {
  std::error_code none;
  return !name.starts_with('.') && disk.exists(checkpoints + '/' + name + kManifest) &&
         !std::filesystem::is_symlink(checkpoints + '/' + name, none);
}

}  // namespace

std::vector<CheckpointSummary> checkpoint_summaries(const Disk& disk, const std::string& checkpoints) {
  std::vector<CheckpointSummary> summaries;
  for (const std::string& name : disk.list(checkpoints))
    if (is_checkpoint(disk, checkpoints, name)) summaries.push_back(summary_of(disk, checkpoints, name));
  std::ranges::stable_sort(summaries, {}, &CheckpointSummary::step);
  return summaries;
}

}  // namespace tutti
