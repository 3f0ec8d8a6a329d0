#include "io/formats/matrix_metrics.h"

#include <algorithm>
#include <charconv>

#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::size_t kMostRows = 10'000;  // larger numbers are no indices

// The number behind the last slash, which is cut off with it.
std::optional<std::size_t> last_index(std::string_view& name) {
  const std::size_t slash = name.rfind('/');
  if (slash == name.npos || slash + 1 == name.size()) return std::nullopt;
  std::size_t index = 0;
  const auto end = std::from_chars(name.data() + slash + 1, name.data() + name.size(), index);
  if (end.ec != std::errc() || end.ptr != name.data() + name.size() || index >= kMostRows)
    return std::nullopt;
  name = name.substr(0, slash);
  return index;
}

}  // namespace

std::optional<MatrixCell> matrix_cell(std::string_view metric) {
  const auto column = last_index(metric);
  const auto row = column ? last_index(metric) : std::nullopt;
  if (!row || metric.empty()) return std::nullopt;
  return MatrixCell{std::string(metric), *row, *column};
}

std::vector<MetricMatrix> metric_matrices(const std::vector<std::pair<std::string, double>>& metrics) {
  std::vector<MetricMatrix> matrices;
  for (const auto& [name, value] : metrics) {
    const auto cell = matrix_cell(name);
    if (!cell) continue;
    auto matrix = std::ranges::find(matrices, cell->matrix, &MetricMatrix::name);
    if (matrix == matrices.end()) matrix = matrices.insert(matrix, {cell->matrix, {}});
    if (matrix->rows.size() <= cell->row) matrix->rows.resize(cell->row + 1);
    std::vector<double>& row = matrix->rows[cell->row];
    if (row.size() <= cell->column) row.resize(cell->column + 1);
    row[cell->column] = value;
  }
  return matrices;
}

std::string MetricMatrix::text() const {
  double diagonal = 0, all = 0;
  std::size_t columns = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    columns = std::max(columns, rows[r].size());
    for (const double cell : rows[r]) all += cell;
    if (r < rows[r].size()) diagonal += rows[r][r];
  }
  const std::string size = std::to_string(rows.size()) + " x " + std::to_string(columns);
  return all > 0 ? size + formatted(", %.1f%% on the diagonal", 100 * diagonal / all) : size;
}

}  // namespace tutti
