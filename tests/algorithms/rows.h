#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "training/engine/event.h"
#include "training/trainee.h"

namespace tutti {

// The steps of a training at which an algorithm acts at an event. Steps are optimizer steps done, so
// AFTER_DATALOADER of the first step is at 0 and its BATCH_END at 1.
struct Acts {
  Event event = Event::kInit;
  int from = 0, to = 0;  // inclusive
  int every = 1;
};

// Why parts of a batch are trained on otherwise than the whole batch; "" where only rounding differs.
struct Differs {
  std::string in_microbatches = "";
  std::string on_ranks = "";
};

constexpr double kRounding = 1e-4;  // of float32
constexpr double kRoundingOfBfloat16 = 0.02;
inline constexpr const char* kAmp = "precision = 'amp_bf16'\n";  // lines of [train]

// An algorithm, and a training that suits it.
struct AlgorithmRow {
  std::string kind;
  std::string options;     // further lines of its entry
  std::string training;    // sections [model], [data.train] and [optimizer]
  std::vector<Acts> acts;  // all, in kSteps steps
  Differs differs = {};
  std::string train = "";        // lines of [train]
  double rounding = kRounding;   // relative difference of losses and weights that rounding explains
  std::string variant = "";      // distinguishes rows of one kind
  ModelFactory make_model = {};  // in place of [model]'s; may be empty
};

inline std::string name_of(const AlgorithmRow& row) {
  return row.variant.empty() ? row.kind : row.kind + "_" + row.variant;
}
inline void PrintTo(const AlgorithmRow& row, std::ostream* out) { *out << name_of(row); }

constexpr int kSteps = 50;
const std::vector<AlgorithmRow>& algorithm_rows();
// Of the zoo's newer models (a few, and all of them nightly).
std::vector<AlgorithmRow> zoo_rows();

// Data of 25 steps an epoch.
inline constexpr const char* kDigitsData =
    "[data.train]\nkind = 'hdf5'\npath = '" TUTTI_SOURCE_DIR
    "/examples/data/digits.h5'\ngroup = 'train'\nbatch_size = 24\nsubset_num_batches = 25\nshuffle = true\n";
inline constexpr const char* kBytesData =
    "[data.train]\nkind = 'bytes'\npath = '" TUTTI_SOURCE_DIR
    "/examples/data/king_james.txt'\nsequence_length = 32\nbatch_size = 8\nsubset_num_batches = 25\n"
    "shuffle = true\n";

inline Acts once(Event event) { return {event, 0, 0}; }
inline const Differs kMixedInParts = {
    .in_microbatches = "a sample's partner is of its microbatch, as in Composer",
    .on_ranks = "a sample's partner is of its rank's part of the batch, as in Composer",
};

// The model with GroupNorm in place of batch norms, which take the statistics of a microbatch.
std::shared_ptr<Model> with_group_norms(std::shared_ptr<Model> model);

// A recipe of kSteps steps. `more`: lines of [train], and further sections.
std::string recipe_text(const AlgorithmRow& row, bool with_algorithm, const std::string& more);
// Lines of [train], and [data.eval] with the row's data: one batch, evaluated every 25 steps.
std::string evaluated(const AlgorithmRow& row);

}  // namespace tutti
