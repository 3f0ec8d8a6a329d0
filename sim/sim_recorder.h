#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "runtime/recorder.h"

namespace tutti {

// Tells of everything that a rank's actors do, right when they do it and on their threads. What is told may
// throw: the actor's process has ended.
class SimRecorder final : public Recorder {
 public:
  using Told = std::function<void(const Happening&)>;

  explicit SimRecorder(Told told) : ring_(kKept), told_(std::move(told)) {}

  void record(const Happening& happening) override {
    ring_.record(happening);
    told_(happening);
  }
  std::vector<Happening> last(int count) const override { return ring_.last(count); }

 private:
  static constexpr int kKept = 128;
  RingRecorder ring_;
  Told told_;
};

}  // namespace tutti
