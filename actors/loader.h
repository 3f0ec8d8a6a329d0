#pragma once

#include "actors/messages/messages.h"
#include "data/dataset.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"

namespace tutti {

// Reads batches ahead of Compute: one for every credit, epoch after epoch from the position that Start names,
// until it is stopped. Also answers LoadBatch, for evaluation: until it hears StopRequested.
class Loader final : public Actor {
 public:
  // `compute` gets the stream; a loader that only answers LoadBatch never starts one.
  Loader(DatasetPtr dataset, Sampler sampler, ActorId compute, Recorder& recorder);

  void receive(Context& context, Envelope& envelope) override;
  std::optional<TimePoint> idle(Context& context) override;

 private:
  BatchReady load(const DataPosition& position) const;
  void advance();

  DatasetPtr dataset_;
  Sampler sampler_;
  ActorId compute_;
  Recorder& recorder_;
  DataPosition next_;
  int credit_ = 0;
  bool started_ = false;
  bool stop_requested_ = false;
};

}  // namespace tutti
