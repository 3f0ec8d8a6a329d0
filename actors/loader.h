#pragma once

#include <memory>
#include <vector>

#include "actors/messages/messages.h"
#include "data/dataset.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "runtime/workers.h"

namespace tutti {

// Reads batches ahead of Compute: one for each credit, epoch after epoch, from Start's position on. For
// evaluations replies to LoadBatch, until StopRequested.
class Loader final : public Actor {
 public:
  // `compute` receives the batches. `workers` share the samples of a batch; null: the Loader's thread reads
  // all. The bits are the same. Batches are copied to `device`.
  Loader(DatasetPtr dataset, Sampler sampler, ActorId compute, Recorder& recorder,
         std::unique_ptr<Workers> workers = nullptr, const Device& device = {});

  void receive(Context& context, Envelope& envelope) override;
  std::optional<TimePoint> idle(Context& context) override;

 private:
  BatchReady load(const DataPosition& position) const;
  Batch read(const std::vector<int64_t>& indices, const Epoch& epoch) const;
  void advance();

  DatasetPtr dataset_;
  Sampler sampler_;
  ActorId compute_;
  Recorder& recorder_;
  std::unique_ptr<Workers> workers_;
  Device device_;
  DataPosition next_;
  int credit_ = 0;
  bool started_ = false;
  bool stop_requested_ = false;
};

}  // namespace tutti
