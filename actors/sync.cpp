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
    asked_ = true;
    post(
        context, group_.all_reduce(sum->values, "metrics"),
        [this, envelope = std::make_shared<Envelope>(std::move(envelope)), values = sum->values](Context& c) {
          asked_ = false;
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
  serve_control(context);
  heartbeat(context);
  const TimePoint before = context.now();
  if (drive(context)) moved_ = context.now();
  // A look that took long did some of the work: there is more.
  if (context.now() - before > kShortNap) moved_ = context.now();
  return next_look(context.now());
}

TimePoint Sync::next_look(TimePoint now) const {
  if (outstanding_.empty()) return now + kLongNap;
  const Nanoseconds waited = now - moved_;
  if (asked_ && waited < kYieldFor) return now;
  return now + std::clamp<Nanoseconds>(waited / 16, kShortNap, kLongNap);
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

// Ranks fill buckets in the order in which their backward runs; they are posted in the plan's, the same on
// all.
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
  asked_ = true;
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
         asked_ = false;
         recorder_.record({c.now(), TraceKind::kVerdict, step_, 0});
         Verdict all = Verdict::decode(verdict, group_.size());
         if (!std::exchange(finite_, true)) all.overflow = group_.size();
         c.reply(*asked, StepFinished{all, gathered});
       });
}

void Sync::agree(Context& context, const Agree& mine) {
  asked_ = true;
  auto round = std::make_unique<AgreementRound>(group_, mine.statement);
  const AgreementRound& agreement = *round;
  post(context, std::move(round), [this, &agreement](Context& c) {
    asked_ = false;
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
  moved_ = context.now();
}

// Completions are reported in the order posted, so the last one (the verdict) stands for all.
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

// A rank that is lost is named together with what it did last, where it was heard.
bool Sync::is_over(Context& context, Work& work) const try {
  return work.done();
} catch (const LostRankError& lost) {
  const auto peer = newest_.peers.find(lost.rank());
  if (peer == newest_.peers.end()) throw;
  Heartbeat last = peer->second.last;
  last.age_s += seconds(context.now() - peer->second.heard);
  throw OperatingError(std::string(lost.what()) + "; the last it did: " + last.text(), lost.kind());
}

void Sync::serve_control(Context& context) {
  while (auto packet = transport_.poll()) {
    if (const auto heartbeat = parse_heartbeat(packet->bytes)) {
      newest_.peers[packet->from] = heard_.peers[packet->from] = {context.now(), *heartbeat};
    } else {
      recorder_.record({context.now(), TraceKind::kControlReceived, step_, packet->from});
      context.send(supervisor_, ControlReceived{packet->from, std::move(packet->bytes)});
    }
  }
  tell_heard(context);
}

void Sync::tell_heard(Context& context) {
  if (heard_.peers.empty() || (noting_ && !noting_.ready())) return;
  noting_ = context.request<Noted>(supervisor_, std::exchange(heard_, {}));
}

// To rank 0, which watches everybody, itself too; rank 0's goes to everybody.
void Sync::heartbeat(Context& context) {
  const TimePoint now = context.now();
  if (now < next_heartbeat_ || transport_.size() == 1) return;
  next_heartbeat_ = now + kHeartbeatEvery;
  const std::string text = heartbeat_text(recorder_, now, asked_);
  if (transport_.rank() != 0) {
    transport_.send(0, text);
    return;
  }
  for (int r = 1; r < transport_.size(); ++r) transport_.send(r, text);
  heard_.peers[0] = {now, parse_heartbeat(text).value()};
}

}  // namespace tutti
