#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "io/journal/journal_reader.h"

namespace tutti {

// What the digests of an evaluation begin with; its label follows. There are many batches in one, and may be
// several evaluations after a step.
inline constexpr std::string_view kEvaluationBatch = "compute/batch of ";
inline constexpr std::string_view kEvaluationMetrics = "compute/metrics of ";

// The step, as metrics.jsonl counts, of a digest that was taken after `done` steps: weights are what these
// came to, evaluations are of such weights, all else is of the next.
int64_t counted_step(std::string_view key, int64_t done);

// The order in which a step comes to its digests: batch, loss, buckets, whatever else there is, weights, and
// what evaluations make of them.
struct DigestOrder {
  static std::tuple<int, std::size_t, std::string_view> place(std::string_view key);
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return place(a) < place(b); }
};

// Walks through what a rank's journal has of digests, step by step.
class JournalSteps {
 public:
  struct Hash {
    uint64_t value = 0;
    std::vector<uint16_t> parts;
    std::shared_ptr<const std::vector<std::string>> names;  // of the parts; null where it has none
  };
  struct Step {
    int64_t number = 0;  // as metrics.jsonl counts; 0: before the first
    // Of a key that was hashed twice, the last; but of evaluations all: "compute/batch of eval #2".
    std::map<std::string, Hash, DigestOrder> hashes;
  };

  explicit JournalSteps(const std::string& path) : cursor_(path) {}

  // The next step, or none behind the last.
  std::optional<Step> next();

  // Once there is none: whether the rank said how it ended, and what is wrong with the record ("torn at byte
  // 2990"), "" of one that is whole or whose writer was killed.
  bool ended() const { return ended_; }
  std::string damage() const;

 private:
  std::optional<JournalDigest> read_digest();
  std::string numbered(std::string_view key);
  void note(JournalDigest digest);

  JournalCursor cursor_;
  std::map<std::string, std::shared_ptr<const std::vector<std::string>>, std::less<>> names_;
  std::optional<Step> open_;
  std::map<std::string, int, std::less<>> seen_;  // of the open step's evaluations, how often
  bool ended_ = false;
  std::string incomplete_;  // why it could not be written on
};

}  // namespace tutti
