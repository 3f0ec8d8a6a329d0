#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/recorder.h"

namespace tutti {

// Tells of everything that a rank's actors do, right when they do it and on their threads. What is told may
// throw: the actor's process has ended. Where a journal is kept, it is told too, and before.
class SimRecorder final : public Recorder {
 public:
  using Observer = std::function<void(const Happening&)>;

  explicit SimRecorder(Observer told, std::unique_ptr<Recorder> journal = nullptr)
      : ring_(kKept), observe_(std::move(told)), journal_(std::move(journal)) {}

  void record(const Happening& happening) override {
    ring_.record(happening);
    if (journal_) journal_->record(happening);
    observe_(happening);
  }
  void delivered(const Delivery& delivery) override {
    if (journal_) journal_->delivered(delivery);
  }
  void end(const std::string& how) override {
    if (journal_) journal_->end(how);
  }
  std::vector<Happening> last(int count) const override { return ring_.last(count); }

 private:
  static constexpr int kKept = 128;
  RingRecorder ring_;
  Observer observe_;
  std::unique_ptr<Recorder> journal_;
};

}  // namespace tutti
