#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "recipe/setting.h"

namespace tutti {

// The dataset that a resolved [data.*] section names. `seed` is the recipe's, for those that are drawn.
// Throws UserError that names file:line, key and value; also for what the opened file holds, as far as
// opening looks at it.
DatasetPtr make_dataset(const Setting& section, uint64_t seed = 0);

// The data of a section with sampling = "own": a dataset for each rank. Empty where the ranks share one.
struct PerRankData {
  std::vector<DatasetPtr> of_rank;  // null: that of a rank of another process
  int64_t samples = 0;              // of an epoch, of each rank
  int64_t classes = 0;              // of all
  uint64_t digest = 0;              // of all, in the order of ranks

  bool empty() const { return of_rank.empty(); }
  // The rank's data, and samples of all ranks; those of `shared` where they share it.
  const DatasetPtr& of(int rank, const DatasetPtr& shared) const;
  int64_t samples_of_all(int world, const DatasetPtr& shared) const;
  SampleSpec spec(const DatasetPtr& shared) const;
};

// Where a rank's data lies.
struct DataPlace {
  int rank = 0;
  std::string host;
};

// Whether each rank has data of its own. Throws UserError where a path names {rank} or {host} without that,
// or anything else in braces with it.
bool has_per_rank_data(const Setting& section);

// The rank's dataset: {rank} and {host} are put into its path. Throws UserError.
DatasetPtr make_per_rank_dataset(const Setting& section, uint64_t seed, const DataPlace& place);

// What ranks tell each other of their data: one line, short.
std::string facts_text(const Dataset& dataset);

// `facts`: each rank's. Throws UserError where samples differ in layout, or datasets in length and on_uneven
// does not allow it.
void settle(PerRankData& data, const Setting& section, const std::vector<std::string>& facts);

}  // namespace tutti
