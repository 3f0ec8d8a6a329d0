#include "tensors/torch_error.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <string_view>

#include "runtime/error.h"
#include "runtime/lack_of_memory.h"
#include "runtime/text.h"
#include "tensors/out_of_memory.h"

namespace tutti {

std::string own_words(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const auto* known = dynamic_cast<const RunError*>(&error);
  std::string text = torch   ? torch->what_without_backtrace()
                     : known ? known->headline()
                             : error_message(error);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.substr(0, text.find_last_not_of(' ') + 1);
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

std::string whole_text(const std::exception& error) {
  return dynamic_cast<const RunError*>(&error) ? error.what() : one_line(error);
}

}  // namespace tutti
