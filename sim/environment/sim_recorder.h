#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/recorder.h"

namespace tutti {

// Calls an observer for each trace event, on the actor's thread, after recording it in the journal if there
// is one. The observer may throw if the actor's process has ended.
class SimRecorder final : public Recorder {
 public:
  using Observer = std::function<void(const TraceEvent&)>;

  explicit SimRecorder(Observer observe, std::unique_ptr<Recorder> journal = nullptr)
      : ring_(kCapacity), observe_(std::move(observe)), journal_(std::move(journal)) {}

  void record(const TraceEvent& event) override {
    ring_.record(event);
    if (journal_) journal_->record(event);
    observe_(event);
  }
  void delivered(const Delivery& delivery) override {
    if (journal_) journal_->delivered(delivery);
  }
  void end(const RankEnd& end) override {
    if (journal_) journal_->end(end);
  }
  std::vector<TraceEvent> last(int count) const override { return ring_.last(count); }

 private:
  static constexpr int kCapacity = 128;
  RingRecorder ring_;
  Observer observe_;
  std::unique_ptr<Recorder> journal_;
};

}  // namespace tutti
