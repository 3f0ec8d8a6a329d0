#include "tensors/out_of_memory.h"

#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "tensors/meter.h"
#include "tensors/torch_error.h"

namespace tutti {
namespace {

constexpr std::array kFields = {
    &OutOfMemoryReport::ranks,     &OutOfMemoryReport::asked,      &OutOfMemoryReport::used,
    &OutOfMemoryReport::budget,    &OutOfMemoryReport::parameters, &OutOfMemoryReport::gradients,
    &OutOfMemoryReport::optimizer, &OutOfMemoryReport::batch,      &OutOfMemoryReport::copies};

std::string mb(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", bytes < 1e5 ? 4 : 1, bytes / kBytesPerMb);
  return text;
}

const OutOfMemoryReport& first(const std::vector<OutOfMemoryReport>& all) {
  const auto found =
      std::find_if(all.begin(), all.end(), [](const OutOfMemoryReport& one) { return one.ranks > 0; });
  TUTTI_ASSERT(found != all.end(), "no rank ran out of memory");
  return *found;
}

}  // namespace

at::Tensor report_row(const OutOfMemoryReport& mine, int rank, int world) {
  const auto fields = static_cast<int64_t>(kFields.size());
  at::Tensor table = at::zeros({world * fields}, at::kDouble);
  double* at = table.data_ptr<double>() + rank * fields;
  for (const auto field : kFields) *at++ = mine.*field;
  return table;
}

std::vector<OutOfMemoryReport> reports_of(const at::Tensor& table) {
  std::vector<OutOfMemoryReport> all(table.numel() / kFields.size());
  const double* at = table.const_data_ptr<double>();
  for (auto& one : all)
    for (const auto field : kFields) one.*field = *at++;
  return all;
}

std::string out_of_memory_text(const std::vector<OutOfMemoryReport>& all) {
  const OutOfMemoryReport& one = first(all);
  const auto others =
      std::count_if(all.begin(), all.end(), [](const OutOfMemoryReport& s) { return s.ranks > 0; }) - 1;
  std::string text = "rank " + std::to_string(&one - all.data());
  if (others > 0) text += " and " + std::to_string(others) + (others > 1 ? " others" : " other");
  text += " ran out of memory";
  if (one.asked == 0) return text;
  const std::string of_budget = one.budget > 0 ? " of " + mb(one.budget) : "";
  return text + " (asked " + mb(one.asked) + " MB, " + mb(one.used) + of_budget + " MB in use)";
}

std::string what_held_memory(const std::vector<OutOfMemoryReport>& all) {
  const OutOfMemoryReport& one = first(all);
  const double rest = one.used - one.parameters - one.gradients - one.optimizer - one.batch - one.copies;
  std::string text = "parameters " + mb(one.parameters) + " MB, gradients " + mb(one.gradients) +
                     " MB, optimizer state " + mb(one.optimizer) + " MB, the batch " + mb(one.batch) +
                     " MB, checkpoint copy " + mb(one.copies) + " MB";
  if (rest > 0) text += ", the rest (activations, batches read ahead) " + mb(rest) + " MB";
  return text;
}

OutOfMemory::OutOfMemory(const std::string& what, const c10::Error& error)
    : OperatingError(what +
                     ": out of memory, and it cannot be done in smaller parts; --resume auto continues " +
                     "from the last checkpoint, if there is one: " + one_line(error)) {}

void guard_memory(const std::string& what, const std::function<void()>& work) try {
  work();
} catch (const c10::OutOfMemoryError& error) {
  throw OutOfMemory(what, error);
}

}  // namespace tutti
