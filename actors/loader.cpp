#include "actors/loader.h"

#include <c10/util/Exception.h>

#include "runtime/error.h"
#include "tensors/torch_error.h"

namespace tutti {

Loader::Loader(DatasetPtr dataset, Sampler sampler, ActorId compute, Recorder& recorder)
    : dataset_(std::move(dataset)), sampler_(std::move(sampler)), compute_(compute), recorder_(recorder) {}

void Loader::receive(Context& context, Envelope& envelope) {
  if (auto* credit = envelope.message.get_if<Credit>()) {
    credit_ += credit->count;
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
  return {position,
          sampler_.global_samples(position.batch),
          sampler_.first_sample(position.batch),
          last,
          dataset_->get(indices),
          false};
} catch (const c10::Error& error) {
  throw OperatingError("a batch cannot be loaded: " + one_line(error));
}

void Loader::advance() {
  if (++next_.batch < sampler_.batches()) return;
  next_.batch = 0;
  ++next_.epoch;
}

}  // namespace tutti
