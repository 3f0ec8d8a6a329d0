#include "tensors/memory/torch_error.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <oneapi/dnnl/dnnl_common.hpp>
#include <string_view>

#include "runtime/error.h"
#include "runtime/lack_of_memory.h"
#include "runtime/text.h"

namespace tutti {
namespace {

// In small letters: a text that has one of the former, or ends in one of the latter, means a lack of memory.
constexpr std::array<std::string_view, 5> kWords = {
    "allocate memory",    // ENOMEM; DefaultCPUAllocator: can't ...; Could not ... for Tensor SizesAndStrides!
    "out of memory",      // C10 Out of Memory. Trying to allocate 4; NNPACK
    "not enough memory",  // Intel oneMKL DFTI ERROR: Not enough memory to allocate
    "memory allocation error",  // Intel oneMKL FATAL ERROR: memory allocation error.
    "std::bad_alloc"};
constexpr std::array<std::string_view, 3> kWordsOfOneDnn = {
    "could not create a primitive", "could not create a memory object", "could not execute a primitive"};

// libtorch says where in its own source it found a value that it takes for impossible, and asks for a report.
std::string without_assertion(const std::string& text) {
  constexpr std::string_view kMark = "INTERNAL ASSERT FAILED", kRequest = "please report a bug to PyTorch.";
  if (text.find(kMark) == text.npos) return text;
  const std::size_t request = text.find(kRequest);
  const std::size_t words =
      request == text.npos ? text.npos : text.find_first_not_of(' ', request + kRequest.size());
  return words == text.npos ? "libtorch finds a value that cannot be" : text.substr(words);
}

// And for a file that caffe2 reads, where in caffe2's source: "[enforce fail at FILE:LINE] . what".
std::string without_place(const std::string& text) {
  constexpr std::string_view kStart = "[enforce fail at ", kEnd = "] . ";
  const std::size_t start = text.find(kStart), end = start == text.npos ? start : text.find(kEnd, start);
  return end == text.npos ? text : text.substr(0, start) + text.substr(end + kEnd.size());
}

}  // namespace

std::string own_words(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const auto* known = dynamic_cast<const RunError*>(&error);
  std::string text = torch   ? torch->what_without_backtrace()
                     : known ? known->headline()
                             : error_message(error);
  std::replace(text.begin(), text.end(), '\n', ' ');
  text = without_place(without_assertion(text));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

bool is_lack_of_memory(const std::exception& error) {
  if (dynamic_cast<const RunError*>(&error)) return false;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) || found_no_memory(error)) return true;
  if (const auto* onednn_error = dynamic_cast<const dnnl::error*>(&error))
    return onednn_error->status == dnnl_out_of_memory ||
           onednn_error->status == dnnl_runtime_error;  // no memory for its code
  const std::string text = lower_case(own_words(error));
  return std::ranges::any_of(kWords, [&](std::string_view one) { return text.find(one) != text.npos; }) ||
         std::ranges::any_of(kWordsOfOneDnn, [&](std::string_view one) { return text.ends_with(one); });
}

bool tells_lack_of_memory(const std::exception& error) {
  return is_lack_of_memory(error) || lacks_memory(end_by(error).kind);
}

std::string one_line(const std::exception& error) {
  const std::string words = own_words(error);
  const bool plain = lower_case(words).find("memory") != words.npos || !is_lack_of_memory(error);
  return plain ? words : "out of memory (" + words + ")";
}

std::string reason_of_lack(const std::string& line) {
  constexpr std::string_view kSaid = "out of memory: ";
  if (line + ": " == kSaid) return "";
  return line.starts_with(kSaid) ? line.substr(kSaid.size()) : line;
}

RunError run_error(const std::exception& error, const std::string& before) {
  const auto* known = dynamic_cast<const RunError*>(&error);
  if (known && before.empty()) return *known;
  const EndKind kind = tells_lack_of_memory(error) ? EndKind::kOutOfMemoryElsewhere : EndKind::kUserError;
  return {kind, before + one_line(error)};
}

void throw_run_error(const std::exception& error, const std::string& before) {
  if (!tells_lack_of_memory(error)) throw UserError(before + one_line(error));
  throw RunError(EndKind::kOutOfMemoryElsewhere, before + one_line(error));
}

std::string whole_text(const std::exception& error) {
  return dynamic_cast<const RunError*>(&error) ? error.what() : one_line(error);
}

}  // namespace tutti
