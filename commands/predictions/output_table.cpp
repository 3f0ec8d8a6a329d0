#include "commands/predictions/output_table.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "runtime/error.h"
#include "tensors/tree.h"

namespace tutti {
namespace {

constexpr int64_t kMostColumns = 65536;
constexpr int64_t kMostMaskClasses = 256;

[[noreturn]] void refuse(const NamedOutput& output, const std::string& why) {
  throw UserError("the output " + (output.name.empty() ? "" : output.name + " ") +
                  shape_text(output.tensor.sizes()) + " is no column of a table: " + why +
                  "; --out FILE.h5 takes outputs of any shape");
}

template <class Value>
std::vector<Value> cells_of(const at::Tensor& numbers) {
  const at::Tensor flat = numbers.to(c10::CppTypeToScalarType<Value>::value).contiguous();
  const Value* data = flat.const_data_ptr<Value>();
  return {data, data + flat.numel()};
}

// As the output's own type.
WrittenColumn::Cells values_of(const at::Tensor& numbers) {
  if (numbers.scalar_type() == at::kDouble) return cells_of<double>(numbers);
  if (numbers.is_floating_point()) return cells_of<float>(numbers);
  return cells_of<int64_t>(numbers);
}

class OutputColumns {
 public:
  OutputColumns(const NamedOutput& output, const OutputTableOptions& options, WrittenRows& rows)
      : output_(output), options_(options), rows_(rows) {}

  void add(int64_t first_row) {
    if (output_.meaning == OutputMeaning::kValues) return add_values();
    const int64_t dims = output_.tensor.dim();
    if (dims == 4) return add_masks(first_row);
    if (dims > 2) refuse(output_, "it has scores of classes for each of several places");
    if (output_.meaning == OutputMeaning::kLabels)
      add_labels();
    else
      add_classes();
  }

 private:
  const std::vector<std::string>& class_names() const { return options_.names.classes; }
  at::Tensor scores() const {
    const at::Tensor& scores = output_.tensor;
    return scores.dim() == 1 ? scores.unsqueeze(1) : scores;
  }
  std::string named(const std::string& column) const {
    return output_.name.empty() ? column : output_.name + '_' + column;
  }
  void add(const std::string& column, WrittenColumn::Cells cells) {
    rows_.push_back({named(column), std::move(cells)});
  }

  // Names, if there is one for each of `count` classes.
  WrittenColumn::Cells class_cells(const at::Tensor& numbers, int64_t count) const {
    std::vector<int64_t> classes = cells_of<int64_t>(numbers);
    if (std::ssize(class_names()) != count) return classes;
    std::vector<std::string> names;
    for (const int64_t number : classes) names.push_back(class_names()[static_cast<std::size_t>(number)]);
    return names;
  }

  void add_classes() {
    at::Tensor probabilities = scores();
    if (probabilities.size(1) == 1) {
      const at::Tensor second = probabilities.sigmoid();
      probabilities = at::cat({1 - second, second}, 1);
    } else {
      probabilities = probabilities.softmax(1);
    }
    const int64_t count = probabilities.size(1), shown = std::clamp<int64_t>(options_.top_k, 1, count);
    const auto [best, places] =
        shown == 1 ? probabilities.max(1, /*keepdim=*/true) : probabilities.topk(shown, 1);
    const auto add_place = [&](int64_t k, const std::string& suffix) {
      add("class" + suffix, class_cells(places.select(1, k), count));
      add("score" + suffix, values_of(best.select(1, k)));
    };
    add_place(0, "");
    for (int64_t k = 0; options_.top_k > 0 && k < shown; ++k) add_place(k, '_' + std::to_string(k + 1));
  }

  std::string label_name(int64_t label, int64_t count) const {
    return std::ssize(class_names()) == count ? class_names()[static_cast<std::size_t>(label)]
                                              : std::to_string(label);
  }

  void add_labels() {
    const at::Tensor probabilities = scores().sigmoid();
    const int64_t count = probabilities.size(1);
    const at::Tensor over = probabilities.gt(0.5).contiguous();
    std::vector<std::string> labels(static_cast<std::size_t>(over.size(0)));
    const bool* is_true = over.const_data_ptr<bool>();
    for (std::string& row : labels)
      for (int64_t label = 0; label < count; ++label)
        if (*is_true++) row += (row.empty() ? "" : ";") + label_name(label, count);
    add("labels", std::move(labels));
    for (int64_t label = 0; label < count; ++label)
      add("score_" + label_name(label, count), values_of(probabilities.select(1, label)));
  }

  // As the targets are in their file.
  at::Tensor in_units_of_target(const at::Tensor& values, int64_t column, int64_t count) const {
    const auto& [mean, deviation] = std::tie(options_.names.mean, options_.names.deviation);
    if (std::ssize(mean) != count) return values;
    const auto at = static_cast<std::size_t>(column);
    return values.to(at::kDouble).mul_(deviation[at]).add_(mean[at]).to(values.scalar_type());
  }

  void add_values() {
    const at::Tensor& output = output_.tensor;
    const at::Tensor values = output.dim() == 1 ? output.unsqueeze(1) : output.flatten(1);
    const int64_t count = values.size(1);
    if (count > kMostColumns) refuse(output_, "it has " + std::to_string(count) + " numbers a row");
    const auto& names = options_.names.values;
    const std::string alone = output_.name.empty() ? "output" : output_.name;
    for (int64_t column = 0; column < count; ++column) {
      const bool has_name = std::ssize(names) == count;
      const std::string name = has_name     ? named(names[static_cast<std::size_t>(column)])
                               : count == 1 ? alone
                                            : alone + '_' + std::to_string(column);
      rows_.push_back({name, values_of(in_units_of_target(values.select(1, column), column, count))});
    }
  }

  void add_masks(int64_t first_row) {
    const at::Tensor& scores = output_.tensor;
    const int64_t classes = scores.size(1);
    if (output_.meaning == OutputMeaning::kLabels && classes > 1)
      refuse(output_, "a pixel may have several labels");
    if (classes > kMostMaskClasses) refuse(output_, "a mask has at most 256 classes");
    const at::Tensor masks =
        (classes == 1 ? scores.select(1, 0).gt(0) : scores.argmax(1)).to(at::kByte).contiguous();
    std::vector<std::string> paths;
    for (int64_t row = 0; row < masks.size(0); ++row)
      paths.push_back(options_.write_mask(masks[row], output_.name, first_row + row));
    add("mask", std::move(paths));
  }

  const NamedOutput& output_;
  const OutputTableOptions& options_;
  WrittenRows& rows_;
};

}  // namespace

WrittenRows output_columns(const std::vector<NamedOutput>& outputs, const OutputTableOptions& options,
                           int64_t first) {
  WrittenRows rows;
  for (const NamedOutput& output : outputs) OutputColumns(output, options, rows).add(first);
  return rows;
}

}  // namespace tutti
