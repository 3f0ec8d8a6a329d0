#include "tensors/torch_error.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <new>

#include "runtime/error.h"

namespace tutti {

std::string one_line(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const auto* known = dynamic_cast<const RunError*>(&error);
  std::string text = torch ? torch->what_without_backtrace() : known ? known->headline() : error.what();
  if (dynamic_cast<const std::bad_alloc*>(&error)) text = "out of memory";
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::string whole_text(const std::exception& error) {
  return dynamic_cast<const RunError*>(&error) ? error.what() : one_line(error);
}

}  // namespace tutti
