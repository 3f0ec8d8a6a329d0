#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/tables/table_target.h"
#include "data/transforms/transform.h"

namespace tutti {

// The facts of the training table that tables of evaluations and predictions use: columns, numbers,
// categories and classes. A checkpoint keeps the text.
struct FittedTable {
  struct Texts {
    std::string column;
    std::vector<std::string> categories;  // sorted; one input each, 0 or 1
  };
  enum class Target {
    kNone,     // not known yet
    kNumber,   // float32 [samples]
    kNumbers,  // float32 [samples, columns]
    kClass,    // int64 [samples], as numbered in the file
    kName      // int64 [samples], places in `classes`
  };

  std::vector<std::string> numbers;  // columns of numbers, the first inputs
  std::vector<Texts> texts;          // the inputs behind
  std::vector<double> missing;       // for each of `numbers`, the number for missing cells; empty: an error
  std::vector<double> mean, std;     // of each of `numbers`; empty: not normalized
  std::vector<std::string> target;   // columns
  // Of each of `target`, if they are numbers; empty: as in the file.
  std::vector<double> target_mean, target_std;
  Target target_is = Target::kNone;
  std::vector<std::string> classes;  // names
  int64_t num_classes = 0;           // 0: the targets are numbers
  SeriesOptions series = {};
  bool skips_targets = false;  // of a table to predict, whose targets may be anything

  int64_t inputs() const;
  // True if the inputs have the targets' numbers of earlier rows.
  bool has_targets_as_inputs() const;
  SampleSpec spec() const;  // "input", if there are inputs, and "target"

  uint64_t digest(uint64_t rows_digest) const;  // with the digest of the samples
  std::string to_json() const;
  static FittedTable from_json(const std::string& text);  // throws OperatingError
};

}  // namespace tutti
