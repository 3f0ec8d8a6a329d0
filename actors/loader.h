#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "actors/messages/messages.h"
#include "data/dataset.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "runtime/workers.h"

namespace tutti {

// Reads batches ahead of Compute, a batch for each credit, epoch after epoch, from Start's position on. For
// evaluations replies to LoadBatch, until StopRequested. A Join drops batches and credits.
class Loader final : public Actor {
 public:
  using MakeSampler = std::function<Sampler(const RankTopology& place)>;

  // `compute` receives the batches. `workers` read the batches of all credits at the same time, in parts;
  // null: the Loader's thread reads batch after batch. The bits are the same. Batches are copied to `device`.
  Loader(DatasetPtr dataset, MakeSampler make_sampler, ActorId compute, Recorder& recorder,
         std::unique_ptr<Workers> workers = nullptr, const Device& device = {});

  void receive(Context& context, Envelope& envelope) override;
  std::optional<TimePoint> idle(Context& context) override;

 private:
  struct Reading;
  using ReadingPtr = std::shared_ptr<Reading>;

  void join(const RankTopology& place);
  ReadingPtr begin(const DataPosition& position);
  BatchReady finish(Reading& reading);
  Batch read(Reading& reading);
  void advance();

  DatasetPtr dataset_;
  MakeSampler make_sampler_;
  std::optional<Sampler> sampler_;  // from Join on
  ActorId compute_;
  Recorder& recorder_;
  Device device_;
  DataPosition next_;
  int credit_ = 0;
  std::deque<ReadingPtr> readings_;  // batches that have begun, the next one to send first
  bool started_ = false;
  bool stop_requested_ = false;
  std::unique_ptr<Workers> workers_;  // last: their threads end before all else goes
};

}  // namespace tutti
