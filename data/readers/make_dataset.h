#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/transforms/ignore_index.h"
#include "recipe/setting.h"

namespace tutti {

struct Tokenization;  // data/texts/tokenized_texts.h

// Makes the dataset of a resolved [data.*] section, with its transforms. `seed`: the recipe's, for synthetic
// data. `owner`, `ignore_index`: as with_recipe_transforms. `fitted`: of the training data, for evaluation
// data. Throws UserError with file:line, key and value, also for errors found when opening the data file.
DatasetPtr make_dataset(const Setting& section, uint64_t seed = 0, const std::string& owner = "",
                        int64_t ignore_index = kIgnoredTarget,
                        const std::optional<std::string>& fitted = std::nullopt);

// The tokenizer that a key names: a tokenizer.json, or its folder. Throws UserError with the key.
std::shared_ptr<const Tokenizer> read_tokenizer(const Setting& key);

// How a section of kind "text" makes tokens: as options.h says, but keys other than path and tokenizer may be
// missing. `answers`: the field of the answers, of pairs. Throws UserError.
Tokenization tokenization_of(const Setting& section, const std::string& answers = "");

// The data of a section with sampling = "own": a dataset for each rank. Empty if the ranks share a dataset.
struct PerRankData {
  std::vector<DatasetPtr> datasets;  // null for ranks of other processes
  int64_t samples = 0;               // of each rank in an epoch
  int64_t classes = 0;               // the maximum over ranks
  uint64_t digest = 0;               // of all datasets, in the order of ranks

  bool empty() const { return datasets.empty(); }
  // The rank's dataset; samples of all ranks; layout of samples. Of `shared` if the ranks share a dataset.
  const DatasetPtr& of(int rank, const DatasetPtr& shared) const;
  int64_t samples_of_all(int data_world, const DatasetPtr& shared) const;
  SampleSpec spec(const DatasetPtr& shared) const;
};

// The values of {rank} and {host} in a path.
struct DataPlace {
  int rank = 0;
  std::string host;
};

// True if each rank has its own dataset. Throws UserError if a path has {rank} or {host} but ranks share
// their data, or has any other placeholder.
bool has_per_rank_data(const Setting& section);

// Makes the rank's dataset, with {rank} and {host} replaced in its path. Throws UserError.
DatasetPtr make_per_rank_dataset(const Setting& section, uint64_t seed, const DataPlace& place,
                                 int64_t ignore_index = kIgnoredTarget);

// The prefix of the names of a per-rank dataset's transforms, so that ranks draw different numbers.
std::string owner_of(int rank);

// Describes a dataset to the other ranks: one short line.
std::string facts_text(const Dataset& dataset);

// Fills `data` from the facts_text of all ranks. Throws UserError if the layouts of samples differ, or the
// lengths of datasets, unless on_uneven allows uneven lengths.
void merge_facts(PerRankData& data, const Setting& section, const std::vector<std::string>& facts);

}  // namespace tutti
