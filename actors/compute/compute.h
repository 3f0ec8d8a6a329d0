#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/compute/training_loop.h"
#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "job/job.h"
#include "runtime/actor/actor.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "runtime/recorder.h"
#include "training/engine/engine.h"

namespace tutti {

// Owns the model, the optimizer, the engine and the state. Describes the run of these ranks on Join, builds
// and restores the state on Prepare, and trains on Start.
class Compute final : public Actor {
 public:
  // `listeners`: of this rank. All references must outlive Compute.
  Compute(const Job& job, const Device& device, Engine::Options listeners, const RankActors& actors,
          Disk& disk, Log& log, Recorder& recorder);
  ~Compute() override;

  void receive(Context& context, Envelope& envelope) override;

 private:
  void join(const RankTopology& place);
  void train(Context& context);
  Verified verify(const Verify& request);
  Prepared prepare(const Prepare& start);
  void complete_algorithms(const Prepare& start);
  void add_listeners();
  void build_model();
  void restore(const Prepare& start);
  Warn rank_zero_warning() const;
  [[noreturn]] void blame(const Prepare& start, const std::exception& error) const;

  const Job& job_;
  RankActors actors_;
  Disk& disk_;
  Log& log_;
  Recorder& recorder_;
  Engine::Options listeners_;

  State state_;
  std::shared_ptr<ComputeServices> services_;  // the state's
  RunLog run_log_;
  std::unique_ptr<Engine> engine_;
  std::optional<TrainStep> train_step_;
  Evaluations evaluations_;
  Timetable times_;
  Snapshots snapshots_;
  std::optional<TrainingLoop> loop_;
  bool stop_requested_ = false;  // before training
};

}  // namespace tutti
