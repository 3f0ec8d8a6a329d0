#include "runtime/lack_of_memory.h"

#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <typeinfo>
#include <variant>

namespace tutti {

bool found_no_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return true;
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system && (system->code() == std::errc::not_enough_memory ||
                    system->code() == std::errc::resource_unavailable_try_again);
}

bool lacks_memory(EndKind end) {
  return end == EndKind::kOutOfMemoryInStep || end == EndKind::kOutOfMemoryInEvaluation ||
         end == EndKind::kOutOfMemoryElsewhere;
}

namespace {

std::string meaning(const std::exception& error) {
  if (dynamic_cast<const std::out_of_range*>(&error))
    return "a name or index is looked up that does not exist";
  if (dynamic_cast<const std::bad_variant_access*>(&error) || dynamic_cast<const std::bad_cast*>(&error))
    return "a value is read as a type that it does not have";
  if (dynamic_cast<const std::bad_optional_access*>(&error)) return "a value is read that is absent";
  if (dynamic_cast<const std::bad_function_call*>(&error)) return "a function is called that is not set";
  return "";
}

}  // namespace

std::string error_message(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "out of memory";
  if (const std::string means = meaning(error); !means.empty()) return means + " (" + error.what() + ")";
  return found_no_memory(error) ? "out of memory or threads: " + std::string(error.what()) : error.what();
}

}  // namespace tutti
