#include "commands/batch_find.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "commands/check.h"
#include "commands/loaded_model.h"
#include "job/job.h"
#include "recipe/set_key.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"
#include "tensors/memory/meter.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

constexpr double kUsedShare = 0.9;  // of the free memory
constexpr int64_t kPrecision = 16;  // the answer is at most a 16th too small

// Of the machine; 0 = not known.
double available_mb() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (double kib = 0; file >> name >> kib; std::getline(file, unit))
    if (name == "MemAvailable:") return kib * 1024 / kBytesPerMb;
  return 0;
}

// Of each rank; the smallest, if ranks have different budgets; 0 = not known in advance.
double memory_limit_mb(const Job& job, int ranks) {
  const std::vector<double>& budgets = job.settings.device.memory_budget_mb->values;
  if (!budgets.empty()) return std::ranges::min(budgets);
  return job.devices ? 0 : kUsedShare * available_mb() / ranks;
}

// With all of the model that is ever trained.
Setting with_batch(Setting recipe, int64_t samples, double limit_mb) {
  Setting& train = *recipe.find("train");
  if (Setting& model = *recipe.find("model"); model.has("unfreeze"))
    set_key(model, "unfreeze", std::monostate());
  set_key(train, "eval_interval", std::string("0ba"));
  Setting& grains = *recipe.find("reproducibility");
  set_key(grains, "mode", std::string("fixed"));
  set_key(grains, "grains", std::monostate());
  set_key(train, "grad_accum", int64_t{1});
  set_key(train, "device_train_microbatch_size", std::monostate());
  Setting& data = *recipe.find("data")->find("train");
  set_key(data, "batch_size", std::monostate());
  set_key(data, "device_batch_size", samples);
  if (limit_mb > 0) set_key(*recipe.find("device"), "memory_budget_mb", limit_mb);
  return recipe;
}

// Sizes between one that fits and one that does not.
class BatchSearch {
 public:
  BatchSearch(const Setting& recipe, const BatchFindOptions& options,
              const std::function<void(const TriedBatch&)>& report)
      : recipe_(recipe), options_(options), report_(report) {
    const Job job = single_process_job(with_batch(recipe, 1, 0), options.ranks);
    limit_mb_ = memory_limit_mb(job, options.ranks);
    most_ = std::min(options.most, job.train_samples() / options.ranks);
  }

  std::vector<TriedBatch> run() {
    for (int64_t size = 1; fits(size) && size < most_;) size = std::min(2 * size, most_);
    while (bad_ - good_ > std::max<int64_t>(1, good_ / kPrecision) && good_ > 0 && good_ < most_)
      fits(good_ + (bad_ - good_) / 2);
    return std::move(tried_);
  }

 private:
  bool fits(int64_t size) {
    const TriedBatch batch = tried(size);
    (batch.trouble.empty() ? good_ : bad_) = size;
    tried_.push_back(batch);
    if (report_) report_(batch);
    return batch.trouble.empty();
  }

  TriedBatch tried(int64_t size) const {
    TriedBatch batch{.samples = size};
    const double forecast = forecast_mb(size);
    if (limit_mb_ > 0 && forecast > limit_mb_) {
      batch.memory_mb = forecast;
      batch.is_left_out = true;
      batch.trouble = formatted("not tried: a forecast of %.4g MB", forecast) +
                      formatted(" is above the limit of %.4g MB", limit_mb_);
      return batch;
    }
    try {
      const TriedStep step =
          try_steps(with_batch(recipe_, size, limit_mb_), {.ranks = options_.ranks, .steps = options_.steps});
      batch.samples_per_s = step.ms > 0 ? static_cast<double>(size) / step.ms * 1e3 : 0;
      batch.memory_mb = step.memory_mb;
    } catch (const std::exception& error) {
      if (!tells_lack_of_memory(error)) throw;
      batch.trouble = one_line(error);
      Meter::give_back();
    }
    return batch;
  }

  // A line through the two largest sizes that fit; 0 = not known.
  double forecast_mb(int64_t size) const {
    const TriedBatch *largest = nullptr, *second = nullptr;
    for (const TriedBatch& batch : tried_) {
      if (!batch.trouble.empty()) continue;
      second = largest;
      largest = &batch;
    }
    if (!second) return 0;
    const double slope =
        (largest->memory_mb - second->memory_mb) / static_cast<double>(largest->samples - second->samples);
    return largest->memory_mb + slope * static_cast<double>(size - largest->samples);
  }

  const Setting& recipe_;
  const BatchFindOptions& options_;
  const std::function<void(const TriedBatch&)>& report_;
  double limit_mb_ = 0;
  int64_t most_ = 0;
  int64_t good_ = 0, bad_ = std::numeric_limits<int64_t>::max();
  std::vector<TriedBatch> tried_;
};

std::string row_of(const TriedBatch& batch) {
  std::string text = formatted("%9.0f", static_cast<double>(batch.samples));
  if (!batch.trouble.empty())
    return text + "  " + (batch.is_left_out ? batch.trouble : "out of memory") + '\n';
  return text + formatted("  %11.4g", batch.samples_per_s) + formatted("  %9.4g", batch.memory_mb) + '\n';
}

void print_conclusion(const std::vector<TriedBatch>& tried) {
  const TriedBatch *largest = nullptr, *fastest = nullptr;
  for (const TriedBatch& batch : tried) {
    if (!batch.trouble.empty()) continue;
    if (!largest || batch.samples > largest->samples) largest = &batch;
    if (!fastest || batch.samples_per_s > fastest->samples_per_s) fastest = &batch;
  }
  const bool ends_by_memory =
      std::ranges::any_of(tried, [](const TriedBatch& batch) { return !batch.trouble.empty(); });
  const std::string size = std::to_string(largest->samples);
  print_text("\nthe largest that fits  " + size + (ends_by_memory ? "" : ", and no larger size was tried") +
             "\nthe fastest            " + std::to_string(fastest->samples) +
             "\n  --set data.train.device_batch_size=" + size + '\n');
}

}  // namespace

std::vector<TriedBatch> try_batches(const Setting& recipe, const BatchFindOptions& options,
                                    const std::function<void(const TriedBatch&)>& report) {
  return BatchSearch(recipe, options, report).run();
}

int find_batch(const Setting& recipe, const BatchFindOptions& options) {
  print_text("  samples    samples/s  memory MB   of one rank\n");
  const auto tried = try_batches(recipe, options, [](const TriedBatch& batch) { print_text(row_of(batch)); });
  if (!tried.front().trouble.empty()) {
    print_text("\nnot even one sample fits: " + on_one_line(tried.front().trouble) + '\n');
    return 1;
  }
  print_conclusion(tried);
  return 0;
}

}  // namespace tutti
