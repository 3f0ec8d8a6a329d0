#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/tables/table_writer.h"

namespace tutti {

// What the numbers of an output [N, ...] mean.
enum class OutputMeaning {
  kClasses,  // scores of classes in dimension 1; a single one is of class 1, against class 0
  kLabels,   // the same, where several may be true
  kValues
};

struct NamedOutput {
  std::string name;   // "" if the model has one output
  at::Tensor tensor;  // on the CPU, of float32, float64 or integers
  OutputMeaning meaning = OutputMeaning::kValues;
};

struct OutputNames {
  std::vector<std::string> classes;  // of classes or labels; empty: numbers
  std::vector<std::string> values;   // of targets that are values
  // Of each of `values`, if targets were normalized: a value becomes value * deviation + mean.
  std::vector<double> mean, deviation;
};

// Writes a mask [height, width] of class numbers, uint8, of a row; returns the cell of its path.
using WriteMask = std::function<std::string(const at::Tensor& mask, const std::string& output, int64_t row)>;

struct OutputTableOptions {
  OutputNames names;
  int64_t top_k = 0;  // also class_1, score_1, ..., class_K, score_K
  WriteMask write_mask;
};

// The columns of a table for outputs of some rows, which begin at row `first` (from 0):
//   classes [N, C]         class, score (the softmax), and top_k more of each
//   labels [N, C]          labels (those of a score over 0.5, with ";" between them), and the score of each
//   values [N, ...]        a column for each, float32 as computed
//   classes [N, C, H, W]   mask: the path of a picture of class numbers
// With several outputs, the names begin with the output's. Throws UserError for other shapes.
WrittenRows output_columns(const std::vector<NamedOutput>& outputs, const OutputTableOptions& options,
                           int64_t first);

}  // namespace tutti
