#include "runtime/lack_of_memory.h"

#include <new>
#include <system_error>

namespace tutti {

bool found_no_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return true;
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system && (system->code() == std::errc::not_enough_memory ||
                    system->code() == std::errc::resource_unavailable_try_again);
}

std::string error_message(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "out of memory";
  return found_no_memory(error) ? "out of memory or threads: " + std::string(error.what()) : error.what();
}

}  // namespace tutti
