#include "data/balance/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "data/balance/class_counts.h"
#include "data/balance/drawn_samples.h"
#include "data/data_settings.h"
#include "data/readers/options.h"
#include "data/readers/table_files.h"
#include "data/split/held_out.h"
#include "data/split/open_split.h"
#include "data/split/sample_part.h"
#include "data/split/split_groups.h"
#include "runtime/text.h"

namespace tutti {
namespace {

// The section's keys on drawing samples, and what they need.
class SamplerSection {
 public:
  SamplerSection(const DatasetPtr& data, const Setting& train, const Setting& eval, int64_t ignore_index)
      : data_(data), train_(train), eval_(eval), ignore_index_(ignore_index) {}

  std::vector<double> weights() const {
    require_countable();
    const SamplerOptions options = SamplerOptions::kind().read(train_);
    if (options.sampler == "balanced") return balanced();
    const bool has_list = train_.has("sampler_weights"), has_column = train_.has("sampler_column");
    if (has_list == has_column)
      train_.at("sampler").fail(
          "expected either sampler_weights, a list with a weight for each class, or "
          "sampler_column, a column or array with a weight for each sample");
    return has_list ? class_weights(options.sampler_weights) : sample_weights();
  }

 private:
  void require_countable() const {
    const Setting& key = train_.at("sampler");
    if (train_.has("command")) key.fail("samples of a command are read in their order; expected a path");
    if (train_.has("sources")) key.fail("the sources of a mixture have weights of their own");
    if (DataSettings::read(train_).sampling == DataSettings::Sampling::kOwn)
      train_.at("sampling").fail("excludes sampler: each rank has samples of its own");
  }

  std::vector<int64_t> classes() const {
    TrainedClasses known = trained_classes(*data_, train_, ignore_index_);
    if (known.classes.empty())
      train_.at("sampler").fail("the class of each sample is not known: " +
                                (known.note.empty() ? "the targets are no single classes" : known.note));
    return std::move(known.classes);
  }

  // Samples whose targets do not count are not drawn.
  template <class Weight>
  std::vector<double> for_each_class(const std::vector<int64_t>& classes, const Weight& weight) const {
    std::vector<double> weights;
    for (const int64_t number : classes)
      weights.push_back(number < 0 ? 0 : weight(static_cast<std::size_t>(number)));
    return weights;
  }

  std::vector<double> balanced() const {
    for (const char* key : {"sampler_weights", "sampler_column"})
      if (train_.has(key)) train_.at(key).fail("is for sampler = \"weighted\"");
    const auto numbers = classes();
    const std::vector<int64_t> counts = class_counts(numbers, 0);
    return for_each_class(numbers, [&](std::size_t c) { return 1 / static_cast<double>(counts[c]); });
  }

  std::vector<double> class_weights(const std::vector<double>& given) const {
    const auto numbers = classes();
    const int64_t count = std::ssize(class_counts(numbers, data_->spec().classes));
    if (std::ssize(given) != count)
      train_.at("sampler_weights").fail("expected " + std::to_string(count) + " weights, one for each class");
    return for_each_class(numbers, [&](std::size_t c) { return given[c]; });
  }

  std::vector<double> sample_weights() const {
    const Setting& column = train_.at("sampler_column");
    std::vector<double> all = numbers_in(train_, column, ignore_index_);
    std::vector<double> weights;
    if (const auto* part = dynamic_cast<const SamplePart*>(data_.get())) {
      if (std::ssize(all) == part->whole()->size())
        for (const int64_t sample : part->samples()) weights.push_back(all[static_cast<std::size_t>(sample)]);
    } else if (is_table(train_) && is_split(eval_)) {
      for (const int64_t row : samples_marked(held_out_rows(train_, eval_, ignore_index_), false))
        weights.push_back(all[static_cast<std::size_t>(row)]);
    } else {
      weights = std::move(all);
    }
    if (std::ssize(weights) != data_->size())
      column.fail("has another number of rows than there are samples");
    const auto wrong = std::ranges::find_if(weights, [](double w) { return !(w >= 0) || std::isinf(w); });
    if (wrong != weights.end())
      column.fail("expected weights of at least 0, found " + formatted("%g", *wrong));
    return weights;
  }

  const DatasetPtr& data_;
  const Setting &train_, &eval_;
  int64_t ignore_index_;
};

}  // namespace

DatasetPtr with_sampler(const DatasetPtr& data, const Setting& train, const Setting& eval,
                        int64_t ignore_index) {
  if (!train.has("sampler")) return data;
  std::vector<double> weights = SamplerSection(data, train, eval, ignore_index).weights();
  if (std::ranges::all_of(weights, [](double weight) { return weight == 0; }))
    train.at("sampler").fail("all samples have weight 0, so none could be drawn");
  if (!std::isfinite(std::accumulate(weights.begin(), weights.end(), 0.0)))
    train.at("sampler").fail("the weights of all samples are too large to be added: give smaller ones");
  return std::make_shared<const DrawnSamples>(data, std::move(weights), train.has("transforms"));
}

}  // namespace tutti
