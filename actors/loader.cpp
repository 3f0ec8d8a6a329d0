#include "actors/loader.h"

#include <ATen/ops/cat.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <span>
#include <utility>

#include "data/readers/transformed_dataset.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

// As in progress. Evaluations load on request.
std::string place_of(const DataPosition& position, bool training) {
  const std::string number = std::to_string(position.batch + 1);
  return (training ? "epoch " + std::to_string(position.epoch + 1) + ", step " + number
                   : "evaluation, batch " + number) +
         ", Loader: ";
}

constexpr int64_t kPartsOfAThread = 2;  // samples take unequal time

// The error with the place of the batch, as what it is. Call while it is handled.
[[noreturn]] void throw_with(const std::string& place) try { throw; } catch (const UserError& error) {
  throw UserError(place + error.what(), error.kind());
} catch (const RunError& error) {
  throw OperatingError(place + error.what(), error.kind());
} catch (const std::exception& error) {
  if (is_lack_of_memory(error)) throw OutOfMemory(place + "a batch cannot be loaded", error);
  const bool is_torch = dynamic_cast<const c10::Error*>(&error);
  throw OperatingError(place + "a batch cannot be loaded: " + one_line(error),
                       is_torch ? EndKind::kOperatingError : end_by(error).kind);
}

// The samples of all parts, which have the same arrays.
Batch joined(const std::vector<Batch>& parts) {
  std::vector<std::vector<at::Tensor>> arrays;  // of each array, the parts
  for (const Batch& part : parts) {
    const auto leaves = part.leaves();
    arrays.resize(leaves.size());
    for (std::size_t i = 0; i < leaves.size(); ++i) arrays[i].push_back(leaves[i].second);
  }
  std::size_t next = 0;
  return parts.front().map([&](const at::Tensor&) { return at::cat(arrays[next++]); });
}

}  // namespace

// A batch that is read in parts, each by whichever thread takes it.
struct Loader::Reading {
  struct Part {
    std::span<const int64_t> indices;
    Batch batch = {};
    std::exception_ptr error = nullptr;
    ThreadTime took = {};
  };

  DataPosition position;
  DatasetPtr dataset;
  std::vector<int64_t> indices;
  Epoch epoch;
  std::vector<Part> parts = {};
  std::atomic<int64_t> left = 0;  // parts that have not been read

  void divide(int64_t into) {
    const auto samples = std::ssize(indices);
    for (int64_t part = 0; part < into; ++part) {
      const auto first = static_cast<std::size_t>(samples * part / into);
      const auto end = static_cast<std::size_t>(samples * (part + 1) / into);
      parts.push_back({std::span(indices).subspan(first, end - first)});
    }
    left = into;
  }

  void read(Part& part) {
    const ThreadTimer timer;
    try {
      part.batch = dataset->get(part.indices, epoch);
    } catch (...) {
      part.error = std::current_exception();
    }
    part.took = timer.elapsed();
    --left;
  }
};

Loader::Loader(DatasetPtr dataset, MakeSampler make_sampler, ActorId compute, Recorder& recorder,
               std::unique_ptr<Workers> workers, const Device& device)
    : dataset_(std::move(dataset)),
      make_sampler_(std::move(make_sampler)),
      compute_(compute),
      recorder_(recorder),
      device_(device),
      workers_(std::move(workers)) {}

void Loader::receive(Context& context, Envelope& envelope) {
  device_.use();
  if (auto* credit = envelope.message.get_if<Credit>()) {
    credit_ += credit->count;
  } else if (auto* transforms = envelope.message.get_if<AddTransforms>()) {
    dataset_ = with_transforms(dataset_, transforms->added);
  } else if (auto* join_message = envelope.message.get_if<Join>()) {
    join(join_message->topology);
  } else if (auto* start = envelope.message.get_if<Start>()) {
    next_ = start->position;
    started_ = true;
  } else if (auto* request = envelope.message.get_if<LoadBatch>()) {
    BatchReady ready;
    ready.stopped = stop_requested_;
    if (stop_requested_) TUTTI_PROBE("stop: a loader refuses a batch of an evaluation");
    context.reply(envelope, stop_requested_ ? std::move(ready) : finish(*begin(request->position)));
  } else if (envelope.message.get_if<StopRequested>()) {
    stop_requested_ = true;
  } else if (envelope.message.get_if<Stop>()) {
    context.stop();
  } else {
    TUTTI_ASSERT(false, envelope.message.name());
  }
}

void Loader::join(const RankTopology& place) {
  sampler_ = make_sampler_(place);
  readings_.clear();
  credit_ = 0;
  started_ = false;
}

std::optional<TimePoint> Loader::idle(Context& context) {
  if (started_ && credit_ == 0) TUTTI_PROBE("loader: all credits are used up");
  if (!started_ || credit_ == 0) return std::nullopt;
  for (const int ahead = workers_ ? credit_ : 1; std::ssize(readings_) < ahead; advance())
    readings_.push_back(begin(next_));
  const DataPosition position = readings_.front()->position;
  context.send(compute_, finish(*readings_.front()));
  recorder_.record({context.now(), TraceKind::kBatchReady, position.epoch, position.batch});
  readings_.pop_front();
  --credit_;
  return context.now();
}

Loader::ReadingPtr Loader::begin(const DataPosition& position) try {
  auto reading = std::make_shared<Reading>(position, dataset_,
                                           sampler_->indices(*dataset_, position.epoch, position.batch),
                                           sampler_->epoch(position.epoch));
  const int64_t most = workers_ ? kPartsOfAThread * workers_->threads() : 1;
  reading->divide(std::clamp<int64_t>(std::ssize(reading->indices), 1, most));
  if (workers_)
    for (auto& part : reading->parts) workers_->add([reading, &part] { reading->read(part); });
  return reading;
} catch (...) {
  throw_with(place_of(position, started_));
}

BatchReady Loader::finish(Reading& reading) try {
  const DataPosition& position = reading.position;
  const bool last = position.batch + 1 == sampler_->batches();
  BatchReady ready{position, sampler_->global_samples(position.batch), sampler_->first_sample(position.batch),
                   last, read(reading)};
  for (const auto& part : reading.parts) ready.took += part.took;
  ready.copy = copy_to_device(ready.batch, device_);
  return ready;
} catch (...) {
  throw_with(place_of(reading.position, started_));
}

Batch Loader::read(Reading& reading) {
  if (workers_)
    workers_->help_until([&reading] { return reading.left == 0; });
  else
    reading.read(reading.parts.front());
  for (const auto& part : reading.parts)
    if (part.error) std::rethrow_exception(part.error);
  if (reading.parts.size() == 1) return std::move(reading.parts.front().batch);
  std::vector<Batch> batches;
  for (auto& part : reading.parts) batches.push_back(std::move(part.batch));
  return joined(batches);
}

void Loader::advance() {
  if (++next_.batch < sampler_->batches()) return;
  if (credit_ > 1) TUTTI_PROBE("loader: reads the next epoch ahead");
  next_.batch = 0;
  ++next_.epoch;
}

}  // namespace tutti
