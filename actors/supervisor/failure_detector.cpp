#include "actors/supervisor/failure_detector.h"

#include <algorithm>
#include <utility>

#include "runtime/probe/probe.h"

namespace tutti {
namespace {

constexpr Nanoseconds kSilentAfter = std::chrono::milliseconds(1500);  // three heartbeats

}  // namespace

FailureDetector::FailureDetector(Nanoseconds hang_timeout, Log& log)
    : hang_timeout_(hang_timeout), log_(log) {}

void FailureDetector::start(TimePoint now, int rank, int world) {
  rank_ = rank;
  world_ = world;
  peers_.clear();
  all_wait_.clear();
  for (int r = 0; r < world_; ++r)
    if (r != rank_ && (rank_ == 0 || r == 0)) peers_[r].received = now;
  last_check_ = now;
}

void FailureDetector::add(const std::map<int, Heartbeats::Peer>& heartbeats) {
  for (const auto& [rank, peer] : heartbeats) peers_[rank] = peer;
}

std::optional<FailureDetector::Failure> FailureDetector::check(TimePoint now) {
  excuse_own_absence(now);
  for (const auto& [rank, peer] : peers_) {
    const Nanoseconds silent = now - peer.received;
    if (silent > hang_timeout_) {
      TUTTI_PROBE("hang: another rank is silent");
      return failure(now, EndKind::kHang, rank,
                     "has not been heard for " + std::to_string(static_cast<int>(seconds(silent))) + " s");
    }
    if (peer.last.waiting || peer.last.age_s <= seconds(hang_timeout_)) continue;
    if (!peer.last.unhurried()) return failure(now, EndKind::kHang, rank, "hangs");
    TUTTI_PROBE("hang: another rank may take long");
    warn_slow(now, rank);
  }
  return check_collective(now);
}

std::optional<FailureDetector::Failure> FailureDetector::check_stop_request(TimePoint now) {
  excuse_own_absence(now);
  for (const auto& [rank, peer] : peers_)
    if (now - peer.received > kSilentAfter)
      return failure(now, EndKind::kSilence, rank,
                     "is silent while rank " + std::to_string(rank_) + " is asked to stop");
  return std::nullopt;
}

// While this rank's Supervisor was busy (a slow disk) or its process stood still, no heartbeat was received.
// The time does not count as silence of others, nor as a hang.
void FailureDetector::excuse_own_absence(TimePoint now) {
  const Nanoseconds away = now - std::exchange(last_check_, now);
  if (away < kSilentAfter / 2) return;
  TUTTI_PROBE("hang: this rank was away itself");
  for (auto& [rank, peer] : peers_) peer.received = std::min(peer.received + away, now);
  all_wait_since_ = std::min(all_wait_since_ + away, now);
}

std::optional<FailureDetector::Failure> FailureDetector::check_collective(TimePoint now) {
  if (rank_ != 0 || static_cast<int>(peers_.size()) < world_) return std::nullopt;
  std::string all, waiting;
  int waits = 0;
  bool done = false;  // some rank is
  for (const auto& [rank, peer] : peers_) {
    all += (all.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": step " +
           std::to_string(peer.last.step) + ", " + name(peer.last.last);
    if (peer.last.waiting) waiting += (waits++ == 0 ? "rank " : ", rank ") + std::to_string(rank);
    done = done || !peer.last.waiting;
    if (peer.last.waiting || peer.last.last == TraceKind::kDone) continue;
    all.clear();
    break;
  }
  if (waits == 0) all.clear();
  if (all.empty() || all != all_wait_) all_wait_since_ = now;
  all_wait_ = all;
  if (now - all_wait_since_ <= hang_timeout_) return std::nullopt;
  std::string why = "a collective hangs: every rank waits for it";
  if (done)
    why =
        "a collective hangs: " + waiting + (waits == 1 ? " waits" : " wait") + " for it, all others are done";
  else
    TUTTI_PROBE("hang: all ranks wait for a collective");
  return Failure{std::nullopt, {EndKind::kHang, why + "; the last they did: " + all}};
}

void FailureDetector::warn_slow(TimePoint now, int rank) {
  TimePoint& next = next_warning_[rank];
  if (now < next) return;
  next = now + hang_timeout_;
  log_.warning("still waits for rank " + std::to_string(rank) + ": " + peers_[rank].last.text());
}

FailureDetector::Failure FailureDetector::failure(TimePoint now, EndKind kind, int rank,
                                                  const std::string& why) const {
  const Heartbeats::Peer& peer = peers_.at(rank);
  Heartbeat last = peer.last;
  last.age_s += seconds(now - peer.received);
  return {rank, {kind, "rank " + std::to_string(rank) + " " + why + "; the last it did: " + last.text()}};
}

}  // namespace tutti
