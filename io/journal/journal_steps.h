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

// Prefixes of the digest keys of an evaluation; the evaluator's label follows. An evaluation has many
// batches, and a step may be followed by several evaluations.
inline constexpr std::string_view kEvaluationBatch = "compute/batch of ";
inline constexpr std::string_view kEvaluationMetrics = "compute/metrics of ";

// The step, counted as in metrics.jsonl, of a digest taken after `done` steps. Weights and evaluations belong
// to the last step that is done, all other digests to the next.
int64_t counted_step(std::string_view key, int64_t done);

// The order of a step's digests: batch, loss, buckets, any other digests, weights, evaluations.
struct DigestOrder {
  static std::tuple<int, std::size_t, std::string_view> place(std::string_view key);
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return place(a) < place(b); }
};

// Reads the digests of a rank's journal step by step.
class JournalSteps {
 public:
  struct Hash {
    uint64_t value = 0;
    std::vector<uint16_t> parts;
    std::shared_ptr<const std::vector<std::string>> names;  // of the parts; null for a digest without parts
    int count = 1;  // of the key's digests in the step so far: one per pass or attempt
  };
  struct Step {
    int64_t number = 0;  // counted as in metrics.jsonl; 0: before the first
    bool whole = true;   // false: the record breaks off in the step, maybe between two passes
    // The last digest of each key; of evaluations all digests, numbered: "compute/batch of eval #2".
    std::map<std::string, Hash, DigestOrder> hashes;
  };

  explicit JournalSteps(const std::string& path) : cursor_(path) {}

  // The next step, or nullopt after the last.
  std::optional<Step> next();

  // After the last step: true if the journal says how the rank ended; and the damage of the file ("torn at
  // byte 2990"), "" if the file is whole or its writer was killed.
  bool ended() const { return ended_; }
  std::string damage() const;

 private:
  std::optional<JournalDigest> read_digest();
  void add(JournalDigest digest);

  JournalCursor cursor_;
  std::map<std::string, std::shared_ptr<const std::vector<std::string>>, std::less<>> names_;
  std::optional<Step> open_;
  std::map<std::string, int, std::less<>> counts_;  // of the open step's digests, by key
  bool ended_ = false;
  bool ended_without_error_ = false;
  std::string incomplete_;  // JournalIncomplete::why
};

}  // namespace tutti
