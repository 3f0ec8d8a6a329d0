#include "tensors/torch_error.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <new>

namespace tutti {

std::string one_line(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch ? torch->what_without_backtrace() : error.what();
  if (dynamic_cast<const std::bad_alloc*>(&error)) text = "out of memory";
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace tutti
