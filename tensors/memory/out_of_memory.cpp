#include "tensors/memory/out_of_memory.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "runtime/text.h"
#include "tensors/memory/meter.h"

namespace tutti {
namespace {

constexpr std::array kFields = {&OutOfMemoryReport::ranks, &OutOfMemoryReport::asked,
                                &OutOfMemoryReport::used, &OutOfMemoryReport::budget};

constexpr std::size_t kWordBytes = 96;
constexpr std::size_t kPacked = 6;  // bytes that a double holds exactly, as a whole number
constexpr std::size_t kWordNumbers = kWordBytes / kPacked;

void pack(const std::string& text, double* to) {
  for (std::size_t i = 0; i < kWordNumbers; ++i) {
    uint64_t number = 0;
    if (i * kPacked < text.size())
      std::memcpy(&number, text.data() + i * kPacked, std::min(kPacked, text.size() - i * kPacked));
    to[i] = static_cast<double>(number);
  }
}

std::string unpack(const double* from) {
  std::string text;
  for (std::size_t i = 0; i < kWordNumbers; ++i) {
    const auto number = static_cast<uint64_t>(from[i]);
    char bytes[kPacked];
    std::memcpy(bytes, &number, kPacked);
    text.append(bytes, kPacked);
  }
  return text.substr(0, text.find('\0'));
}

constexpr auto kRow = static_cast<int64_t>(kFields.size() + kHeldFor + kWordNumbers);

std::string mb(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", bytes < 1e5 ? 4 : 1, bytes / kBytesPerMb);
  return text;
}

const OutOfMemoryReport& first(const std::vector<OutOfMemoryReport>& all) {
  const auto report =
      std::find_if(all.begin(), all.end(), [](const OutOfMemoryReport& one) { return one.ranks > 0; });
  TUTTI_ASSERT(report != all.end(), "no rank ran out of memory");
  return *report;
}

std::string because_of(const std::exception& error) {
  const std::string reason = reason_of_lack(one_line(error));
  return reason.empty() ? "" : ": " + reason;
}

}  // namespace

at::Tensor report_row(const OutOfMemoryReport& mine, int rank, int world) {
  at::Tensor table = at::zeros({world * kRow}, at::kDouble);
  double* at = table.data_ptr<double>() + rank * kRow;
  for (const auto field : kFields) *at++ = mine.*field;
  at = std::ranges::copy(mine.held.bytes, at).out;
  pack(mine.words, at);
  return table;
}

std::vector<OutOfMemoryReport> reports_of(const at::Tensor& table) {
  std::vector<OutOfMemoryReport> all(table.numel() / kRow);
  const double* at = table.const_data_ptr<double>();
  for (auto& report : all) {
    for (const auto field : kFields) report.*field = *at++;
    std::copy_n(at, kHeldFor, report.held.bytes.begin());
    at += kHeldFor;
    report.words = unpack(at);
    at += kWordNumbers;
  }
  return all;
}

std::string out_of_memory_text(const std::vector<OutOfMemoryReport>& all) {
  const OutOfMemoryReport& report = first(all);
  const auto others =
      std::count_if(all.begin(), all.end(), [](const OutOfMemoryReport& s) { return s.ranks > 0; }) - 1;
  std::string text = "rank " + std::to_string(&report - all.data());
  if (others > 0) text += " and " + std::to_string(others) + (others > 1 ? " others" : " other");
  text += " ran out of memory";
  std::string why;
  if (report.asked > 0)
    why = "asked " + mb(report.asked) + " MB, " + mb(report.used) +
          (report.budget > 0 ? " of " + mb(report.budget) : "") + " MB in use";
  if (!report.words.empty()) why += (why.empty() ? "" : "; ") + report.words;
  return why.empty() ? text : text + " (" + why + ")";
}

std::string what_held_memory(const std::vector<OutOfMemoryReport>& all) {
  const OutOfMemoryReport& report = first(all);
  std::string text;
  for (std::size_t i = 0; i < kHeldFor; ++i) {
    const auto purpose = static_cast<HeldFor>(i);
    if (purpose == HeldFor::kGathered && report.held[purpose] == 0) continue;  // nothing is sharded
    text += std::string(name(purpose)) + " " + mb(report.held[purpose]) + " MB, ";
  }
  const double rest = report.used - report.held.total();
  if (rest > 0) return text + "the rest (activations, batches read ahead) " + mb(rest) + " MB";
  return text.substr(0, text.size() - 2);
}

OutOfMemory::OutOfMemory(const std::string& what, const std::exception& error)
    : OperatingError(what +
                         ": out of memory, and it cannot be done in smaller parts; --resume auto continues " +
                         "from the last checkpoint, if there is one" + because_of(error),
                     EndKind::kOutOfMemoryElsewhere) {}

void guard_memory(const std::string& what, const std::function<void()>& work) try {
  work();
} catch (const std::exception& error) {
  if (!is_lack_of_memory(error)) throw;
  throw OutOfMemory(what, error);
}

}  // namespace tutti
