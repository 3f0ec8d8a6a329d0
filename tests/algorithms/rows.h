#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "training/engine/event.h"

namespace tutti {

// The steps of a training at which an algorithm acts at an event. Steps are optimizer steps done, so
// AFTER_DATALOADER of the first step is at 0 and its BATCH_END at 1.
struct Acts {
  Event event = Event::kInit;
  int from = 0, to = 0;  // inclusive
  int every = 1;
};

// An algorithm, and a training that suits it.
struct AlgorithmRow {
  std::string kind;
  std::string options;     // further lines of its entry
  std::string training;    // sections [model], [data.train] and [optimizer]
  std::vector<Acts> acts;  // all, in kSteps steps
  std::string train = "";  // lines of [train]
};

inline void PrintTo(const AlgorithmRow& row, std::ostream* out) { *out << row.kind; }

constexpr int kSteps = 50;
const std::vector<AlgorithmRow>& algorithm_rows();

}  // namespace tutti
