#include "actors/sync.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "actors/messages/heartbeat.h"
#include "collectives/agreement.h"

namespace tutti {

Sync::Sync(Group& group, Transport& transport, ActorId supervisor, Recorder& recorder)
    : group_(group), transport_(transport), supervisor_(supervisor), recorder_(recorder) {}

void Sync::receive(Context& context, Envelope& envelope) {
  Message& message = envelope.message;
  if (auto* bucket = message.get_if<ReduceBucket>()) {
    step_ = bucket->step;
    bucket_ready(context, bucket->index);
  } else if (auto* finish = message.get_if<FinishStep>()) {
    step_ = finish->step;
    finish_step(context, envelope, *finish);
  } else if (auto* plan = message.get_if<SetPlan>()) {
    set_plan(*plan);
  } else if (auto* sum = message.get_if<SumDoubles>()) {
    awaited_ = true;
    post(
        context, group_.all_reduce(sum->values, "metrics"),
        [this, envelope = std::make_shared<Envelope>(std::move(envelope)), values = sum->values](Context& c) {
          awaited_ = false;
          c.reply(*envelope, Summed{values});
        });
  } else if (auto* mine = message.get_if<Agree>()) {
    agree(context, *mine);
  } else if (auto* wanted = message.get_if<AllocateBuckets>()) {
    allocate(context, envelope, *wanted);
  } else if (auto* control = message.get_if<SendControl>()) {
    recorder_.record({context.now(), TraceKind::kControlSent, step_, control->to});
    transport_.send(control->to, control->text);
    if (envelope.slot) context.reply(envelope, ControlSent{});
  } else if (message.get_if<Stop>()) {
    context.stop();
  } else {
    TUTTI_ASSERT(false, message.name());
  }
  drive(context);
}

std::optional<TimePoint> Sync::idle(Context& context) {
  receive_control(context);
  send_heartbeat(context);
  const TimePoint before = context.now();
  if (drive(context)) progress_ = context.now();
  // A slow poll did a part of the work, so more may be ready.
  if (context.now() - before > kShortestPoll) progress_ = context.now();
  return next_poll(context.now());
}

TimePoint Sync::next_poll(TimePoint now) const {
  if (outstanding_.empty()) return now + kLongestPoll;
  const Nanoseconds waited = now - progress_;
  if (awaited_ && waited < kYieldFor) return now;
  return now + std::clamp<Nanoseconds>(waited / 16, kShortestPoll, kLongestPoll);
}

void Sync::set_plan(SetPlan& plan) {
  buckets_ = std::move(plan.buckets);
  statistics_ = plan.statistics;
  ready_.assign(buckets_.size(), false);
  next_bucket_ = 0;
  digests_.clear();
  if (!recorder_.digests()) return;
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    digests_.emplace_back("sync/bucket " + std::to_string(b),
                          parts_of_chunk(plan.parts.at(b), static_cast<int64_t>(buckets_[b].nbytes()),
                                         group_.size(), group_.rank()),
                          recorder_);
}

// Buckets fill in the order of backward, but are posted in the plan's order, the same on all ranks.
void Sync::bucket_ready(Context& context, int index) {
  TUTTI_ASSERT(!ready_.at(index), "bucket " + std::to_string(index) + " twice in a step");
  ready_[index] = true;
  for (; next_bucket_ < buckets_.size() && ready_[next_bucket_]; ++next_bucket_) {
    const auto bucket = static_cast<int>(next_bucket_);
    recorder_.record({context.now(), TraceKind::kReduceBucket, step_, bucket});
    WorkPtr work = group_.all_reduce(buckets_[bucket], "bucket " + std::to_string(bucket));
    const Work& sum = *work;
    post(context, std::move(work), [this, bucket, &sum](Context&) { bucket_reduced(bucket, sum.finite()); });
  }
}

void Sync::bucket_reduced(int index, bool finite) {
  if (!digests_.empty()) digests_[index].record(step_, buckets_[index]);
  finite_ = finite_ && finite;
}

void Sync::finish_step(Context& context, Envelope& envelope, FinishStep& finish) {
  TUTTI_ASSERT(next_bucket_ == buckets_.size(), "the step ended before its buckets were full");
  awaited_ = true;
  at::Tensor gathered;
  if (statistics_ > 0) {
    gathered = at::empty({group_.size(), statistics_});
    post(context, group_.all_gather(finish.statistics, gathered.view({-1}), "statistics"),
         [keep = finish.statistics](Context&) {});
  }
  const at::Tensor verdict = finish.verdict.encode(group_.rank(), group_.size());
  ready_.assign(buckets_.size(), false);
  next_bucket_ = 0;
  post(context, group_.all_reduce(verdict, "verdict"),
       [this, asked = std::make_shared<Envelope>(std::move(envelope)), verdict, gathered](Context& c) {
         awaited_ = false;
         recorder_.record({c.now(), TraceKind::kVerdict, step_, 0});
         Verdict all = Verdict::decode(verdict, group_.size());
         if (!std::exchange(finite_, true)) all.overflow = group_.size();
         c.reply(*asked, StepFinished{all, gathered});
       });
}

void Sync::agree(Context& context, const Agree& mine) {
  awaited_ = true;
  auto round = std::make_unique<AgreementRound>(group_, mine.statement);
  const AgreementRound& agreement = *round;
  post(context, std::move(round), [this, &agreement](Context& c) {
    awaited_ = false;
    c.send(supervisor_, Agreed{agreement.statements()});
  });
}

void Sync::allocate(Context& context, Envelope& envelope, const AllocateBuckets& wanted) {
  BucketMemory memory;
  for (const int64_t bytes : wanted.bytes) memory.buckets.push_back(group_.allocate(bytes));
  context.reply(envelope, std::move(memory));
}

void Sync::post(Context& context, WorkPtr work, Then then) {
  outstanding_.push_back({std::move(work), std::move(then)});
  progress_ = context.now();
}

// Completions are reported in the order of posting, so the verdict, which is last, implies all others.
bool Sync::drive(Context& context) {
  std::size_t finished = 0;
  bool in_order = true;
  for (auto& one : outstanding_) {
    const bool done = is_over(context, *one.work);
    in_order = in_order && done;
    if (in_order) ++finished;
  }
  if (finished == 0) return false;
  std::vector<Outstanding> over(std::make_move_iterator(outstanding_.begin()),
                                std::make_move_iterator(outstanding_.begin() + finished));
  outstanding_.erase(outstanding_.begin(), outstanding_.begin() + finished);
  for (auto& one : over)
    if (one.then) one.then(context);
  return true;
}

// The error of a lost rank names the last event in its newest heartbeat.
bool Sync::is_over(Context& context, Work& work) const try {
  return work.done();
} catch (const LostRankError& lost) {
  const auto peer = newest_.peers.find(lost.rank());
  if (peer == newest_.peers.end()) throw;
  Heartbeat last = peer->second.last;
  last.age_s += seconds(context.now() - peer->second.received);
  throw OperatingError(std::string(lost.what()) + "; the last it did: " + last.text(), lost.kind());
}

void Sync::receive_control(Context& context) {
  while (auto packet = transport_.poll()) {
    if (const auto heartbeat = parse_heartbeat(packet->bytes)) {
      newest_.peers[packet->from] = unreported_.peers[packet->from] = {context.now(), *heartbeat};
    } else {
      recorder_.record({context.now(), TraceKind::kControlReceived, step_, packet->from});
      context.send(supervisor_, ControlReceived{packet->from, std::move(packet->bytes)});
    }
  }
  if (unreported_.peers.empty() || (reporting_ && !reporting_.ready())) return;
  reporting_ = context.request<Noted>(supervisor_, std::exchange(unreported_, {}));
}

// Other ranks send to rank 0; rank 0 sends to all ranks and to itself.
void Sync::send_heartbeat(Context& context) {
  const TimePoint now = context.now();
  if (now < next_heartbeat_ || transport_.size() == 1) return;
  next_heartbeat_ = now + kHeartbeatEvery;
  const std::string text = heartbeat_text(recorder_, now, awaited_);
  if (transport_.rank() != 0) {
    transport_.send(0, text);
    return;
  }
  for (int r = 1; r < transport_.size(); ++r) transport_.send(r, text);
  unreported_.peers[0] = {now, parse_heartbeat(text).value()};
}

}  // namespace tutti
