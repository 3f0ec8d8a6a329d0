#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti {

// A number of a matrix among the metrics: "eval/ConfusionMatrix/3/7" is in row 3 and column 7 of
// "eval/ConfusionMatrix".
struct MatrixCell {
  std::string matrix;
  std::size_t row = 0, column = 0;
};

// Nothing for a metric that is no cell of a matrix.
std::optional<MatrixCell> matrix_cell(std::string_view metric);

// A matrix of an evaluation, by rows; a missing cell is 0.
struct MetricMatrix {
  std::string name;  // "eval/ConfusionMatrix"
  std::vector<std::vector<double>> rows;

  std::string text() const;  // "10 x 10, 93.3% on the diagonal"
};

// The matrices among metrics and their values, in the order of their first cells.
std::vector<MetricMatrix> metric_matrices(const std::vector<std::pair<std::string, double>>& metrics);

}  // namespace tutti
