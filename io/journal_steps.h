#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "io/journal_reader.h"

namespace tutti {

// The order in which a step comes to things: batch, loss, buckets, whatever else there is, weights.
struct ThingOrder {
  static std::tuple<int, std::size_t, std::string_view> place(std::string_view thing);
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
    int64_t number = 0;                              // as metrics.jsonl counts; 0: before the first
    std::map<std::string, Hash, ThingOrder> hashes;  // of a thing that was hashed twice, the last
  };

  explicit JournalSteps(const std::string& path) : cursor_(path) {}

  // The next step, or none behind the last.
  std::optional<Step> next();

 private:
  std::optional<JournalDigest> read_digest();
  void note(JournalDigest digest);

  JournalCursor cursor_;
  std::map<std::string, std::shared_ptr<const std::vector<std::string>>, std::less<>> names_;
  std::optional<Step> open_;
};

}  // namespace tutti
