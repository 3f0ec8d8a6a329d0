#include "actors/loader.h"

#include <ATen/ops/cat.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "data/readers/transformed_dataset.h"
#include "runtime/error.h"
#include "tensors/out_of_memory.h"
#include "tensors/torch_error.h"

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

Loader::Loader(DatasetPtr dataset, Sampler sampler, ActorId compute, Recorder& recorder,
               std::unique_ptr<Workers> workers, const Device& device)
    : dataset_(std::move(dataset)),
      sampler_(std::move(sampler)),
      compute_(compute),
      recorder_(recorder),
      workers_(std::move(workers)),
      device_(device) {}

void Loader::receive(Context& context, Envelope& envelope) {
  device_.use();
  if (auto* credit = envelope.message.get_if<Credit>()) {
    credit_ += credit->count;
  } else if (auto* transforms = envelope.message.get_if<AddTransforms>()) {
    dataset_ = with_transforms(dataset_, transforms->added);
  } else if (auto* start = envelope.message.get_if<Start>()) {
    next_ = start->position;
    started_ = true;
  } else if (auto* wanted = envelope.message.get_if<LoadBatch>()) {
    BatchReady ready;
    ready.stopped = stop_requested_;
    context.reply(envelope, stop_requested_ ? std::move(ready) : load(wanted->position));
  } else if (envelope.message.get_if<StopRequested>()) {
    stop_requested_ = true;
  } else if (envelope.message.get_if<Stop>()) {
    context.stop();
  } else {
    TUTTI_ASSERT(false, envelope.message.name());
  }
}

std::optional<TimePoint> Loader::idle(Context& context) {
  if (!started_ || credit_ == 0) return std::nullopt;
  context.send(compute_, load(next_));
  recorder_.record({context.now(), TraceKind::kBatchReady, next_.epoch, next_.batch});
  --credit_;
  advance();
  return context.now();
}

BatchReady Loader::load(const DataPosition& position) const try {
  const auto indices = sampler_.indices(*dataset_, position.epoch, position.batch);
  const bool last = position.batch + 1 == sampler_.batches();
  BatchReady ready{position, sampler_.global_samples(position.batch), sampler_.first_sample(position.batch),
                   last, read(indices, sampler_.epoch(position.epoch))};
  ready.copy = copy_to_device(ready.batch, device_);
  return ready;
} catch (const UserError& error) {
  throw UserError(place_of(position, started_) + error.what(), error.kind());
} catch (const RunError& error) {
  throw OperatingError(place_of(position, started_) + error.what(), error.kind());
} catch (const std::exception& error) {
  const std::string place = place_of(position, started_);
  if (is_lack_of_memory(error)) throw OutOfMemory(place + "a batch cannot be loaded", error);
  const bool is_torch = dynamic_cast<const c10::Error*>(&error);
  throw OperatingError(place + "a batch cannot be loaded: " + one_line(error),
                       is_torch ? EndKind::kOperatingError : end_by(error).kind);
}

Batch Loader::read(const std::vector<int64_t>& indices, const Epoch& epoch) const {
  const auto samples = std::ssize(indices);
  const int64_t parts = workers_ ? std::min<int64_t>(samples, kPartsOfAThread * workers_->threads()) : 1;
  if (parts < 2) return dataset_->get(indices, epoch);
  std::vector<Batch> read(static_cast<std::size_t>(parts));
  workers_->run(static_cast<int>(parts), [&](int part) {
    const auto first = static_cast<std::size_t>(samples * part / parts);
    const auto end = static_cast<std::size_t>(samples * (part + 1) / parts);
    read[static_cast<std::size_t>(part)] =
        dataset_->get(std::span(indices).subspan(first, end - first), epoch);
  });
  return joined(read);
}

void Loader::advance() {
  if (++next_.batch < sampler_.batches()) return;
  next_.batch = 0;
  ++next_.epoch;
}

}  // namespace tutti
