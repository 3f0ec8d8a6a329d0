#include "analysis/rank_work.h"

#include <algorithm>
#include <utility>

namespace tutti {
namespace {

bool is_actor(std::string_view actor, ActorKind kind) { return actor == name(kind); }

bool is_in_a_pass(Activity work) {
  return work == Activity::kPrepareBatch || work == Activity::kForward || work == Activity::kBackward ||
         work == Activity::kUpdate;
}

WorkSink::Args args_of(TraceKind kind, const JournalEvent& event) {
  WorkSink::Args args;
  const EventWork what = work_of_event(kind);
  if (kind == TraceKind::kBatchReady)
    args.emplace_back("epoch", event.step + 1);
  else if (event.step >= 0)
    args.emplace_back("step", step_of_event(kind, event.step));
  if (what.detail) args.emplace_back(what.detail, detail_of_event(kind, event.detail));
  return args;
}

}  // namespace

// The journal has no time of sending: a message leaves at its delivery, from the sender's slice of that time.
void RankWork::read(const JournalDelivery& delivery) {
  ++messages_;
  Track& to = track_of(delivery.to);
  Track* from = delivery.from.empty() ? nullptr : &track_of(delivery.from);
  Nanoseconds time = monotonic(to, delivery.time);
  if (from) {
    time = std::max(time, from->last);
    touch(*from, time);
    sink_.leave(from->id, delivery, time);
  }
  if (is_actor(delivery.to, ActorKind::kCompute) && delivery.message == "BatchReady" && !done_) {
    take_batch(to, time);
  } else {
    end_all(to, to.waits ? time : to.last);
    begin_message(to, delivery, time);
  }
  if (from) sink_.arrive(to.id, delivery, time);
  follow(delivery, time);
}

RankWork::Place RankWork::read(const JournalEvent& event) {
  Track& actor = track_of(event.actor);
  const Nanoseconds before = actor.last, time = monotonic(actor, event.time);
  const bool idle = !actor.message && !actor.part;
  touch(actor, time);
  if (const TraceKind* kind = trace_kind(event.kind)) {
    draw(actor, *kind, event, idle ? time : before);
    follow(*kind, event, time);
  } else {
    begin_part(actor, Activity::kCoordinate, std::string(event.kind), time,
               {{"step", event.step}, {"detail", event.detail}});
  }
  return {actor.id, time};
}

void RankWork::finish() {
  for (auto& [actor, track] : tracks_) end_all(track, track.last);
  if (const Track* track = compute()) end_step_slice(track->last);
}

Nanoseconds RankWork::last_time() const {
  Nanoseconds last{};
  for (const auto& [actor, track] : tracks_) last = std::max(last, track.last);
  return last;
}

// A slice for the event; `before`: the actor's sign before it.
void RankWork::draw(Track& track, TraceKind kind, const JournalEvent& event, Nanoseconds before) {
  const bool goes_on = kind == TraceKind::kBatch && track.part && track.work == Activity::kPrepareBatch;
  // end_pass draws kBackwardDone; kStepDone is a last sign.
  if (goes_on || kind == TraceKind::kBackwardDone || kind == TraceKind::kStepDone) return;
  const EventWork what = work_of_event(kind);
  const auto args = args_of(kind, event);
  std::string name = what.name;
  if (what.numbered) name += ' ' + std::to_string(detail_of_event(kind, event.detail));
  if (what.role == EventWork::Role::kMark) return sink_.mark(track.id, name, track.last, args);
  const bool ends = what.role == EventWork::Role::kEnds;
  if (ends && track.waits) return end_part(track, track.last);
  end_part(track, ends ? before : track.last);
  begin_part(track, what.work, name, ends ? before : track.last, args);
  track.waits = what.waits_for_next;
  if (ends) end_part(track, track.last);
}

// The effect of an event on other tracks, or beyond its own slice.
void RankWork::follow(TraceKind kind, const JournalEvent& event, Nanoseconds time) {
  switch (kind) {
    case TraceKind::kBatch:
      step_ = event.step + 1;
      begin_step_slice(Activity::kStepEnd, "step " + std::to_string(step_), step_began_);
      return;
    case TraceKind::kBackwardDone:
    case TraceKind::kOutOfMemory:
      return end_pass(track_of(event.actor), kind, time);
    case TraceKind::kVerdict:
      return continue_with(Activity::kWaitForSums, Activity::kUpdate, name(Activity::kUpdate), time);
    case TraceKind::kSkipped:
      sink_.mark(track_of(event.actor).id, "skipped", time, step_args());
      [[fallthrough]];
    case TraceKind::kCommitted:
      return sink_.step_done(step_, time);
    case TraceKind::kEvaluation:
      if (step_slice_ != StepSlice::kEvaluation)
        begin_step_slice(Activity::kEvaluation, "evaluation after step " + std::to_string(event.step), time);
      return;
    case TraceKind::kGather:
      ++gathers_;
      return;
    case TraceKind::kGathered:
      if (--gathers_ <= 0) continue_with(Activity::kWaitForGather, paused_, paused_name_, time);
      return;
    case TraceKind::kDone:
      done_ = true;
      return end_step_slice(time);
    case TraceKind::kBatchReady:
      if (is_actor(event.actor, ActorKind::kLoader)) ready_.push_back(time);
      return;
    default:
      return;
  }
}

// Compute asks Sync to wait for an entry of the plan. If no gather is under way, the entry is done.
void RankWork::follow(const JournalDelivery& delivery, Nanoseconds time) {
  if (!is_actor(delivery.to, ActorKind::kSync) || delivery.message != "AwaitEntry" || gathers_ <= 0) return;
  Track* track = compute();
  if (track && track->part && (track->work == Activity::kForward || track->work == Activity::kBackward))
    wait_for_gather(*track, std::max(track->last, time));
}

// The ranks then sum their votes; a single rank, and evaluations without memory, do not wait.
void RankWork::end_pass(Track& compute, TraceKind kind, Nanoseconds time) {
  const bool alone = world_ == 1;
  if (kind == TraceKind::kOutOfMemory && (alone || !is_in_a_pass(compute.work))) return;
  const Activity next = alone ? Activity::kUpdate : Activity::kWaitForSums;
  begin_part(compute, next, name(next), time, step_args());
}

void RankWork::wait_for_gather(Track& compute, Nanoseconds time) {
  paused_ = compute.work;
  paused_name_ = compute.part ? compute.name : "";
  compute.last = time;
  begin_part(compute, Activity::kWaitForGather, name(Activity::kWaitForGather), time, step_args());
}

// Ends a wait of Compute for Sync.
void RankWork::continue_with(Activity from, Activity next, const std::string& name, Nanoseconds time) {
  Track* track = compute();
  if (!track || !track->part || track->work != from) return;
  track->last = std::max(track->last, time);
  begin_part(*track, next, std::string(name), track->last, step_args());
}

// The end of the step before lasts until the batch is taken, or Compute waits for it.
void RankWork::take_batch(Track& track, Nanoseconds time) {
  Nanoseconds ready = time;
  if (!ready_.empty()) {
    ready = ready_.front();
    ready_.pop_front();
  }
  const bool waits = std::exchange(track.seen, true) && ready > track.last;
  step_began_ = waits ? track.last : time;
  end_all(track, step_began_);
  end_step_slice(step_began_);
  if (waits) {
    begin_part(track, Activity::kWaitForData, name(Activity::kWaitForData), track.last);
    end_part(track, time);
  }
  track.last = time;
  begin_part(track, Activity::kPrepareBatch, name(Activity::kPrepareBatch), time);
}

WorkSink::Args RankWork::step_args() const { return {{"step", step_}}; }

void RankWork::begin_step_slice(Activity work, const std::string& name, Nanoseconds time) {
  if (!std::exchange(has_steps_, true)) sink_.add_track(kSteps, "steps");
  end_step_slice(time);
  sink_.begin(kSteps, work, name, time, {});
  step_slice_ = work == Activity::kEvaluation ? StepSlice::kEvaluation : StepSlice::kStep;
}

void RankWork::end_step_slice(Nanoseconds time) {
  if (std::exchange(step_slice_, StepSlice::kNone) != StepSlice::kNone) sink_.end(kSteps, time);
}

RankWork::Track* RankWork::compute() {
  const auto track = tracks_.find(name(ActorKind::kCompute));
  return track == tracks_.end() ? nullptr : &track->second;
}

RankWork::Track& RankWork::track_of(std::string_view actor) {
  const auto track = tracks_.find(actor);
  if (track != tracks_.end()) return track->second;
  Track& made = tracks_[std::string(actor)];
  made.id = kSteps + static_cast<int>(tracks_.size());
  sink_.add_track(made.id, actor);
  return made;
}

// Times of two threads may be out of order in a journal by the time of writing a record.
Nanoseconds RankWork::monotonic(const Track& track, TimePoint time) const {
  return std::max(track.last, Nanoseconds(time - zero_));
}

// The first sign of an actor without a message opens a slice.
void RankWork::touch(Track& track, Nanoseconds time) {
  track.last = time;
  track.seen = true;
  if (track.message || track.part) return;
  sink_.begin(track.id, Activity::kCoordinate, "starts", time, {});
  track.message = true;
}

void RankWork::begin_message(Track& track, const JournalDelivery& delivery, Nanoseconds time) {
  const MessageWork what = work_of_message(delivery.to, delivery.message);
  sink_.begin(track.id, what.work, what.name, time,
              {{"message", delivery.message},
               {"from", delivery.from.empty() ? std::string_view("outside") : delivery.from}});
  track.last = time;
  track.message = track.seen = true;
}

void RankWork::begin_part(Track& track, Activity work, const std::string& name, Nanoseconds time,
                          const WorkSink::Args& args) {
  end_part(track, time);
  sink_.begin(track.id, work, name, time, args);
  track.part = true;
  track.work = work;
  track.name = name;
}

void RankWork::end_part(Track& track, Nanoseconds time) {
  track.waits = false;
  if (std::exchange(track.part, false)) sink_.end(track.id, time);
}

void RankWork::end_all(Track& track, Nanoseconds time) {
  end_part(track, time);
  if (std::exchange(track.message, false)) sink_.end(track.id, time);
  track.last = std::max(track.last, time);
}

namespace {

void add_each(WorkTimes::Seconds& to, const WorkTimes::Seconds& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

}  // namespace

void WorkTimes::add(const WorkTimes& other) {
  add_each(compute, other.compute);
  add_each(beside, other.beside);
}

void WorkTimer::add_track(int track, std::string_view actor) {
  if (track == RankWork::kSteps) return;
  tracks_[track].to = actor == name(ActorKind::kCompute) ? &times_.compute : &times_.beside;
}

void WorkTimer::begin(int track, Activity work, std::string_view, Nanoseconds time, const Args&) {
  Track& timed = tracks_[track];
  count(timed, time);
  timed.open.push_back(work);
}

void WorkTimer::end(int track, Nanoseconds time) {
  Track& timed = tracks_[track];
  count(timed, time);
  timed.open.pop_back();
}

void WorkTimer::count(Track& track, Nanoseconds time) {
  if (track.to && !track.open.empty())
    (*track.to)[static_cast<std::size_t>(track.open.back())] += seconds(time - track.last);
  track.last = time;
}

}  // namespace tutti
