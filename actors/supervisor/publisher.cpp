#include "actors/supervisor/publisher.h"

#include <utility>

namespace tutti {

Publisher::Publisher(const Job& job, CheckpointStore& store, ActorId checkpointer, Log& log,
                     Recorder& recorder)
    : job_(job), store_(store), checkpointer_(checkpointer), log_(log), recorder_(recorder) {}

std::optional<Publisher::Conclusion> Publisher::add(Context& context, int rank, Durable part) {
  const std::string name = part.name;
  unpublished_[name][rank] = std::move(part);
  if (static_cast<int>(unpublished_[name].size()) < job_.world) return std::nullopt;
  Parts parts = std::move(unpublished_.extract(name).mapped());
  const std::string unfinished = unfinished_folder(job_.checkpoints, name, job_.nonce);
  const std::string error = recorder_.input(RecordedInput::kPublishError, publish(name, unfinished, parts));
  if (error.empty()) {
    log_.info("checkpoint " + name + " is published");
  } else {
    log_.warning("checkpoint " + name + " failed (" + std::to_string(++failed_) +
                 " so far), the last good one stays: " + error);
    store_.discard(unfinished);
  }
  context.send(checkpointer_, Concluded{});
  recorder_.record({context.now(), error.empty() ? TraceKind::kPublished : TraceKind::kCheckpointFailed});
  ++concluded_;
  return Conclusion{error.empty(), parts.begin()->second.last};
}

// The error, or "". The state is from the lowest rank that saves one.
std::string Publisher::publish(const std::string& name, const std::string& unfinished, Parts& parts) {
  CheckpointManifest manifest;
  for (auto& [rank, part] : parts) {
    if (!part.error.empty()) return "rank " + std::to_string(rank) + ": " + part.error;
    manifest.files.push_back(std::move(part.file));
    if (manifest.state.empty()) manifest.state = std::move(part.state);
  }
  return store_.publish(name, unfinished, manifest);
}

}  // namespace tutti
