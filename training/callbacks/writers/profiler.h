#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/disk.h"
#include "training/callbacks/options.h"
#include "training/engine/callback.h"

namespace at {
class RecordFunction;
}

namespace tutti {

enum class ProfilerAction { kSkip, kWarmUp, kRecord, kRecordAndSave };

// The action for a batch, counted from 0 in its epoch: composer.profiler.cyclic_schedule. After `skip_first`
// batches of each epoch, `repeat` times (0: to the end of the epoch): wait, warm up, record.
ProfilerAction action_at(const ProfilerOptions& schedule, int64_t batch);

// Records libtorch's operators, and the kernels of a device, by Kineto, and writes each window of active
// batches as a Chrome trace. `tutti timeline` puts the windows beside the actors' events. Each step is a
// range named ProfilerStep#<batch>. Of several ranks in a process, one rank is recorded: Kineto is the
// process's own.
class Profiler final : public Callback {
 public:
  Profiler(Disk& disk, ProfilerOptions options);
  ~Profiler() override;

  std::string name() const override { return "Profiler"; }
  void fit_start(State& state, Logger&) override;
  void batch_start(State& state, Logger&) override;
  void batch_end(State& state, Logger&) override;
  void epoch_end(State& state, Logger&) override;
  void close(State& state, Logger&) override;

 private:
  void record();
  void save(const State& state);

  Disk& disk_;
  ProfilerOptions options_;
  bool has_turn_ = false;  // of the ranks of this process
  bool on_device_ = false;
  int64_t resumed_in_epoch_ = 0;  // batches of the first epoch before this run
  bool prepared_ = false, recording_ = false;
  std::unique_ptr<at::RecordFunction> step_;
};

}  // namespace tutti
