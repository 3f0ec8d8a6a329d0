#include "analysis/work_times.h"

namespace tutti {
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
  Track& one = tracks_[track];
  count(one, time);
  one.open.push_back(work);
}

void WorkTimer::end(int track, Nanoseconds time) {
  Track& one = tracks_[track];
  count(one, time);
  one.open.pop_back();
}

void WorkTimer::count(Track& track, Nanoseconds time) {
  if (track.to && !track.open.empty())
    (*track.to)[static_cast<std::size_t>(track.open.back())] += seconds(time - track.last);
  track.last = time;
}

}  // namespace tutti
